package dev.postroad;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;

/** A file that goes with a message. */
public final class Attachment {
    private final String filename;
    private final String content;
    private final String contentType;
    private final String contentId;

    private Attachment(String filename, String content, String contentType, String contentId) {
        this.filename = Arguments.given("filename", filename);
        this.content = content;
        this.contentType = contentType;
        this.contentId = contentId;
    }

    /**
     * An attachment from bytes.
     *
     * @param filename its name, without a path
     * @param content its bytes
     * @return the attachment
     */
    public static Attachment of(String filename, byte[] content) {
        return new Attachment(filename, Base64.getEncoder().encodeToString(content), null, null);
    }

    /**
     * An attachment from a file, which is read at once. Its name is that of the file.
     *
     * @param file the file
     * @return the attachment
     * @throws IOException if the file cannot be read
     */
    public static Attachment ofFile(Path file) throws IOException {
        byte[] content = Files.readAllBytes(file);
        return of(file.getFileName().toString(), content);
    }

    /**
     * The same under another name.
     *
     * @param filename the name, without a path
     * @return a new attachment
     */
    public Attachment withFilename(String filename) {
        return new Attachment(filename, content, contentType, contentId);
    }

    /**
     * The same with a media type; without one, the server goes by the file's name.
     *
     * @param contentType such as {@code application/pdf}
     * @return a new attachment
     */
    public Attachment withContentType(String contentType) {
        return new Attachment(filename, content, contentType, contentId);
    }

    /**
     * The same as an inline image, which the HTML shows as {@code cid:<contentId>}.
     *
     * @param contentId a name of it within the message
     * @return a new attachment
     */
    public Attachment withContentId(String contentId) {
        return new Attachment(filename, content, contentType, contentId);
    }

    /** As the interface has it; what was not given is left out. */
    Map<String, Object> members() {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("filename", filename);
        members.put("content", content);
        members.put("content_type", contentType);
        members.put("content_id", contentId);
        members.values().removeIf(value -> value == null);
        return members;
    }
}
