# frozen_string_literal: true

module Postroad
  # A file that goes with an email. With a content_id it is shown inside the HTML, as "cid:<content_id>".
  Attachment = Struct.new(:filename, :bytes, :content_type, :content_id, keyword_init: true) do
    # Reads the file now. Its own name is the filename, unless you give another.
    def self.from_file(path, filename: File.basename(path), content_type: nil, content_id: nil)
      new(filename: filename, bytes: File.binread(path), content_type: content_type, content_id: content_id)
    end

    def initialize(filename:, bytes:, content_type: nil, content_id: nil)
      raise ArgumentError, "bytes must be a String, not #{bytes.class}" unless bytes.is_a?(String)

      super(filename: filename, bytes: bytes.b.freeze, content_type: content_type, content_id: content_id)
      freeze
    end

    # The members of the request.
    def payload # :nodoc:
      { filename: filename, content: [bytes].pack("m0"), content_type: content_type, content_id: content_id }.compact
    end

    # Says how large the file is, and does not fill a log with it.
    def inspect
      "#<Postroad::Attachment #{filename.inspect}, #{bytes.bytesize} bytes>"
    end
    alias_method :to_s, :inspect

    # The same in irb.
    def pretty_print(printer) # :nodoc:
      printer.text(inspect)
    end
  end
end
