/** Mail of Spring applications; needs {@code spring-context-support}, which this library does not bring. */
package dev.postroad.spring;
