# frozen_string_literal: true

require_relative "helper"
require "tmpdir"

# Emails and attachments as they are written into a request.
class EmailTest < Minitest::Test
  def written(**members)
    JSON.parse(Postroad::Email.new(from: "a@example.com", to: "b@example.net", **members).to_json)
  end

  def test_what_is_left_out_is_not_sent
    assert_equal({ "from" => "a@example.com", "to" => "b@example.net" }, written)
    assert_equal({ "from" => "a@example.com", "to" => "b@example.net", "text" => "", "tags" => [] }, written(text: "", tags: []))
  end

  def test_keys_are_sent_as_they_are
    sent = written(headers: { "X-order_Id" => "1" }, variables: { firstName: "Ada", "last_name" => nil })
    assert_equal({ "X-order_Id" => "1" }, sent["headers"])
    assert_equal({ "firstName" => "Ada", "last_name" => nil }, sent["variables"])
  end

  def test_mistyped_and_missing_members_are_refused
    assert_raises(ArgumentError) { written(replyto: "c@example.com") }
    assert_raises(ArgumentError) { Postroad::Email.new(from: "a@example.com") }
    attachment = Postroad::Attachment.new(filename: "a.txt", bytes: "a")
    [attachment, ["a.txt"], "a.txt"].each { |other| assert_raises(ArgumentError) { written(attachments: other) } }
  end

  def test_text_that_is_no_text_is_refused
    [{ text: "\xff" }, { subject: "\xE4".b }, { variables: { a: Float::NAN } }].each do |members|
      assert_raises(ArgumentError, members.inspect) { written(**members) }
    end
    assert_equal "Grüße", written(text: "Grüße".encode("ISO-8859-1"))["text"]
  end

  def test_attachments
    bytes = (0..255).map(&:chr).join * 2
    sent = written(attachments: [Postroad::Attachment.new(filename: "a.bin", bytes: bytes),
                                 Postroad::Attachment.new(filename: "b", bytes: "", content_type: "image/png", content_id: "logo")])
    assert_equal [{ "filename" => "a.bin", "content" => [bytes].pack("m0") },
                  { "filename" => "b", "content" => "", "content_type" => "image/png", "content_id" => "logo" }], sent["attachments"]
    refute_includes sent["attachments"][0]["content"], "\n"
  end

  def test_an_attachment_from_a_file
    Dir.mktmpdir do |folder|
      path = File.join(folder, "receipt 1.pdf")
      File.binwrite(path, "%PDF\r\n\xff")
      attachment = Postroad::Attachment.from_file(path)
      assert_equal ["receipt 1.pdf", "%PDF\r\n\xff".b], [attachment.filename, attachment.bytes]
      assert_equal "other.pdf", Postroad::Attachment.from_file(path, filename: "other.pdf").filename
      assert_raises(Errno::ENOENT) { Postroad::Attachment.from_file("#{path}.none") }
    end
  end

  def test_attachments_are_values
    attachment = Postroad::Attachment.new(filename: "a.txt", bytes: "secret")
    assert_predicate attachment, :frozen?
    assert_equal '#<Postroad::Attachment "a.txt", 6 bytes>', attachment.inspect
    assert_equal "#{attachment.inspect}\n", attachment.pretty_inspect
    assert_equal Postroad::Attachment.new(filename: "a.txt", bytes: "secret"), attachment
    assert_raises(ArgumentError) { Postroad::Attachment.new(filename: "a.txt", bytes: nil) }
    assert_raises(FrozenError) { Postroad::Email.new(from: "a@example.com", to: "b@example.net").text = "x" }
  end
end
