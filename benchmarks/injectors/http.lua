-- Requests from a template, each with its own serial number, for wrk (its script is LuaJIT).
--
-- BENCH_TEMPLATE is a file with one whole HTTP request, in which every run of twelve "@" is replaced by the serial. With
-- BENCH_VALUES, every run of twelve "#" is replaced by the first word of the next line of that file, and of twelve "%" by
-- its second; after the last line comes the first.
-- BENCH_SECONDS after its first request a thread sends no more: it writes one byte of a request that never ends, so that
-- all earlier requests are answered, counted, and nothing is cut off when wrk closes its connections. After BENCH_MESSAGES
-- requests it sends no more either: its connections stay open and silent, because somebody waits for the mail that it
-- sent. With BENCH_EXPECT=202 every answer's status is looked at (dearer: for the warm-up); otherwise wrk counts those
-- over 399. With BENCH_RATE so many requests a second are sent at the most, evenly; a late one is not made up for.

local ffi = require("ffi")
ffi.cdef [[
  struct bench_time { long seconds; long nanoseconds; };
  int clock_gettime(int clock, struct bench_time *result);
]]
local CLOCK_MONOTONIC = 1
local UNFINISHED = "P"
local SILENCE = ""
local instant = ffi.new("struct bench_time")

local function now()
  ffi.C.clock_gettime(CLOCK_MONOTONIC, instant)
  return tonumber(instant.seconds) + tonumber(instant.nanoseconds) / 1e9
end

local threads = {}

function setup(thread)
  thread:set("number", #threads)
  table.insert(threads, thread)
end

local MARK = "([@#%%])" .. ("%1"):rep(11)
local parts, holes, values = {}, {}, {}
local seconds = tonumber(os.getenv("BENCH_SECONDS"))
local messages = tonumber(os.getenv("BENCH_MESSAGES")) or math.huge
local expected = tonumber(os.getenv("BENCH_EXPECT"))
local rate = tonumber(os.getenv("BENCH_RATE"))
local deadline

function init()
  local file = assert(io.open(os.getenv("BENCH_TEMPLATE"), "rb"))
  local rest = file:read("*a")
  file:close()
  while true do
    local first, last, mark = rest:find(MARK)
    if not first then break end
    table.insert(parts, rest:sub(1, first - 1))
    table.insert(parts, "")
    table.insert(holes, {place = #parts, mark = mark})
    rest = rest:sub(last + 1)
  end
  table.insert(parts, rest)
  if os.getenv("BENCH_VALUES") then
    for line in io.lines(os.getenv("BENCH_VALUES")) do
      local first, second = line:match("^(%S+) ?(%S*)$")
      table.insert(values, {["#"] = first, ["%"] = second})
    end
  end
  serial, sent, unexpected, sending_seconds = 0, 0, 0, 0
end

local function build()
  serial = serial + 1
  local own = ("%02d%010d"):format(number, serial)
  local value = values[(serial - 1) % math.max(#values, 1) + 1]
  for index = 1, #holes do
    local hole = holes[index]
    parts[hole.place] = hole.mark == "@" and own or value[hole.mark]
  end
  return table.concat(parts)
end

-- wrk asks its first thread for one request before it begins, to count the requests in it; that one is not sent.
function request()
  if number == 0 and serial == 0 then return build() end
  if sent >= messages then return SILENCE end
  local time = now()
  deadline = deadline or time + seconds
  if time >= deadline then return UNFINISHED end
  sent = sent + 1
  sending_seconds = time - deadline + seconds
  return build()
end

if rate then
  local next_at
  function delay()
    local time = now()
    next_at = math.max((next_at or time) + 1 / rate, time)
    return (next_at - time) * 1000
  end
end

if expected then
  function response(status)
    if status ~= expected then unexpected = unexpected + 1 end
  end
end

function done(summary, latency)
  local all_sent, all_unexpected, longest = 0, 0, 0
  for _, thread in ipairs(threads) do
    all_sent = all_sent + thread:get("sent")
    all_unexpected = all_unexpected + thread:get("unexpected")
    longest = math.max(longest, thread:get("sending_seconds"))
  end
  local errors = summary.errors
  io.write(("BENCH {\"sent\":%d,\"answered\":%d,\"unexpected\":%d,\"refused\":%d,\"broken\":%d,"):format(
    all_sent, summary.requests, all_unexpected, errors.status, errors.connect + errors.read + errors.write + errors.timeout))
  io.write(("\"milliseconds\":%d,"):format(longest * 1000))
  io.write(("\"p50\":%d,\"p99\":%d,\"worst\":%d}\n"):format(latency:percentile(50), latency:percentile(99), latency.max))
end
