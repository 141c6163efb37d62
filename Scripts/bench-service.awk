# Prints the report of Scripts/bench-service, and writes the rows and goals of its JSON file. The input has lines of a name and a
# value, one for each round. The variables are "rounds" and "json".

function sort(values, count,    i, j, swap) {
  for (i = 1; i < count; i++) for (j = i + 1; j <= count; j++) if (values[j] < values[i]) { swap = values[i]; values[i] = values[j]; values[j] = swap }
}

function is_measured(key) { return (key, 1) in data }

# A figure that is no time was measured once.
function read_sample(key,    i) {
  number = (key, rounds) in data ? rounds : 1
  for (i = 1; i <= number; i++) sample[i] = data[key, i]
  sort(sample, number)
  middle = sample[int((number + 1) / 2)]
}

function ratio(name, over, under,    i) {
  for (i = 1; i <= rounds; i++) if ((over, i) in data && (under, i) in data) data[name, i] = data[over, i] / data[under, i]
}

# row NAME: starts a row of the JSON file.
function row(name) {
  if (json == "") return
  printf "%s\n        {\"name\": \"%s\", \"figures\": [", row_separator, name >>json
  row_separator = "]},"
  separator = ""
}

# figure NAME UNIT KEY PEER: prints a figure, and adds it to the row.
function figure(name, unit, key, peer) {
  if (!is_measured(key)) { printf "%-50s not measured\n", key; return }
  read_sample(key)
  printf "%-50s %.*f %s (%.*f-%.*f)\n", key, digits(middle), middle, unit, digits(middle), sample[1], digits(middle), sample[number]
  if (json == "") return
  printf "%s\n          {\"name\": \"%s\", \"unit\": \"%s\", %s\"sample\": {\"median\": %.4f, \"low\": %.4f, \"high\": %.4f, \"count\": %d}}", \
    separator, name, unit, peer == "" ? "" : "\"peer\": \"" peer "\", ", middle, sample[1], sample[number], number >>json
  separator = ","
}

function digits(value) { return value == int(value) ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0 }

# goal WHAT UNIT KEY LIMIT IS_UPPER: prints a goal, and remembers it for the JSON file.
function goal(what, unit, key, limit, is_upper,    reached) {
  if (!is_measured(key)) return
  read_sample(key)
  reached = is_upper ? middle <= limit : middle >= limit
  printf "%-7s %s: %.*f %s, the goal is %s %s\n", reached ? "reached" : "MISSED", what, digits(middle), middle, unit, is_upper ? "<=" : ">=", limit
  goals = goals (goals == "" ? "" : ",") sprintf("\n        {\"what\": \"image service: %s\", \"unit\": \"%s\", \"value\": %.4f, \"%s\": %s, \"isReached\": %s}", \
    what, unit, middle, is_upper ? "atMost" : "atLeast", limit, reached ? "true" : "false")
}

# quality KEY: adds the quality and the size of an image to the row.
function quality(key) {
  if (is_measured("quality-" key)) figure("quality", "", "quality-" key)
  figure("PSNR", "dB", "ratio-" key)
  figure("file", "bytes", "size-" key)
}

{ data[$1, ++count[$1]] = $2 }

END {
  ratio("warm / nginx", "warm", "warm-nginx")
  ratio("warm beside bombs / nginx", "warm-bombs", "warm-nginx")
  ratio("p99 beside bombs / p99", "warm-bombs-p99", "warm-p99")
  ratio("cold / --workers 0", "cold", "cold-0")
  ratio("cold / vipsthumbnail", "cold", "cold-vipsthumbnail")
  ratio("cold / thumbor", "cold", "cold-thumbor")
  ratio("cold / image_filter", "cold", "cold-image_filter")
  variants = split("equal equal-effort equal-fast equal-both", variant, " ")
  for (i = 1; i <= variants; i++) ratio(variant[i] " / thumbor", "cold-" variant[i], "cold-thumbor")
  settings["equal-effort"] = " with effort=2"
  settings["equal-fast"] = " with --fast-shrink-on-load true"
  settings["equal-both"] = " with effort=2 and --fast-shrink-on-load true"

  row("from memory, nginx")
  figure("results", "1/s", "warm-nginx"); figure("p99", "µs", "warm-nginx-p99")
  row("from memory, etagere-cli serve")
  figure("results", "1/s", "warm"); figure("p99", "µs", "warm-p99"); figure("rate / nginx", "×", "warm / nginx", "nginx")
  row("from memory, beside drawings that exceed the time")
  figure("results", "1/s", "warm-bombs"); figure("p99", "µs", "warm-bombs-p99"); figure("rate / nginx", "×", "warm beside bombs / nginx", "nginx")
  row("made, vipsthumbnail")
  figure("results", "1/s", "cold-vipsthumbnail")
  row("made, image_filter")
  figure("results", "1/s", "cold-image_filter")
  row("made, thumbor")
  figure("results", "1/s", "cold-thumbor"); quality("thumbor")
  row("made, etagere-cli serve")
  figure("results", "1/s", "cold"); quality("default")
  figure("rate / vipsthumbnail", "×", "cold / vipsthumbnail", "vipsthumbnail")
  figure("rate / thumbor", "×", "cold / thumbor", "thumbor")
  figure("rate / image_filter", "×", "cold / image_filter", "image_filter")
  figure("rate / in the process", "×", "cold / --workers 0", "made, etagere-cli serve --workers 0")
  row("made, etagere-cli serve --workers 0")
  figure("results", "1/s", "cold-0")
  for (i = 1; i <= variants; i++) if (is_measured("cold-" variant[i])) {
    row("made in thumbor's quality, etagere-cli serve" settings[variant[i]])
    figure("results", "1/s", "cold-" variant[i]); quality(variant[i]); figure("rate / thumbor", "×", variant[i] " / thumbor", "thumbor")
  }
  row("200 made at once, etagere-cli serve")
  figure("growth of the memory", "MiB", "memory-growth")

  print ""
  goal("results from memory, against nginx with the same bytes", "×", "warm / nginx", 0.9)
  goal("results from memory beside drawings that exceed the time, against nginx without them", "×", "warm beside bombs / nginx", 0.75)
  goal("99th percentile beside drawings that exceed the time, against the one without them", "×", "p99 beside bombs / p99", 1.2, 1)
  goal("results made in codec workers, against the process of the service", "×", "cold / --workers 0", 0.95)
  goal("results made, against vipsthumbnail", "×", "cold / vipsthumbnail", 0.9)
  goal("results made, against image_filter", "×", "cold / image_filter", 1)
  for (i = 1; i <= variants; i++)
    goal("results made in thumbor's quality" settings[variant[i]] ", against thumbor", "×", variant[i] " / thumbor", 1)
  goal("growth of the memory of all processes, 200 sources of 12 MP at once", "MiB", "memory-growth", 256, 1)
  if (json != "") printf "]}],\n      \"goals\": [%s],\n", goals >>json
}
