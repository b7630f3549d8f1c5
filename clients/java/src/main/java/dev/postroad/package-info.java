/**
 * A client of Postroad, the transactional email service that people run themselves.
 *
 * <p>{@link dev.postroad.Postroad} sends and reads messages, {@link dev.postroad.Webhooks} verifies
 * what the service posts back. In responses, a member that the server left out is {@code null}, an
 * empty list or an empty map.
 */
package dev.postroad;
