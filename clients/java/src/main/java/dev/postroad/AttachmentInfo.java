package dev.postroad;

/**
 * What a {@link Receipt} tells of an attachment.
 *
 * @param filename its name
 * @param contentType its media type
 * @param size its size in bytes
 * @param contentId its name within the message, if it is an inline image
 */
public record AttachmentInfo(String filename, String contentType, Integer size, String contentId) {
    static AttachmentInfo from(Members members) {
        return new AttachmentInfo(
                members.string("filename"),
                members.string("content_type"),
                members.integer("size"),
                members.string("content_id"));
    }
}
