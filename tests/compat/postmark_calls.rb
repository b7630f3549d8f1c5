# Calls methods of the `postmark` gem: reads {host, port, path, key, calls: {method: [arguments]}} from standard input,
# and writes the methods that the gem has, and the result of each call. `{"$mail": {…}}` stands for a message of the
# `mail` gem with these fields.
require "json"
require "mail"
require "postmark"

given = JSON.parse($stdin.read, symbolize_names: true)
options = { host: given[:host], port: given[:port], path_prefix: given[:path], secure: false }
clients = {
  "ApiClient" => Postmark::ApiClient.new(given[:key], **options),
  "AccountApiClient" => Postmark::AccountApiClient.new(given[:key], **options),
}
methods = clients.flat_map do |name, client|
  client.class.public_instance_methods(false).grep_v(/max_batch_size/).map { |method| "#{name}.#{method}" }
end

def revived(value)
  return value.map { |one| revived(one) } if value.is_a?(Array)
  return value unless value.is_a?(Hash)
  return value.transform_values { |one| revived(one) } unless value.key?(:$mail)

  fields = value[:$mail]
  message = Mail.new
  fields.except(:html, :file).each { |name, given| message.public_send(name, given) }
  return message unless fields[:html]

  message.html_part { content_type "text/html; charset=UTF-8"; body fields[:html] }
  message.text_part { body fields[:body] }
  message.add_file(filename: "a.txt", content: fields[:file])
  message
end

# Lists are read as they are walked through.
def told(client, method, given)
  required = client.method(method).parameters.count { |kind, _| kind == :req }
  result = client.public_send(method, *(given ? revived(given) : ["x"] * required))
  { data: result.is_a?(Enumerator) ? result.first(2) : result }
rescue Postmark::Error => e
  { error: { name: e.class.name, message: e.message } }
end

results = given[:calls].to_h do |name, arguments|
  client, method = name.to_s.split(".")
  [name, told(clients.fetch(client), method, arguments)]
end
puts JSON.generate(methods: methods, results: results)
