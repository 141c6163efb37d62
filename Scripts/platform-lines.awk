# Resolves the "#if" conditions of Swift sources as the compiler does for one platform.
#
# Variables:
#   platform  Linux, iOS, macOS, tvOS, watchOS, visionOS or macCatalyst
#   traits    all or none: whether the names without an argument (traits, DEBUG) are set. TSAN, for the thread sanitizer, is not.
#   mode      lines: prints FILE:LINE for each line in an "#if" block that the platform selects
#             code: writes each source to the folder "out". All other lines of the blocks are empty, so that lines keep their
#             numbers. Imports of modules that exist on Linux in another form name their declarations instead, such as
#             AppleFoundation (Tests/Support/AppleStubs).
#
# A condition with "compiler(...)" depends on the compiler, not on the platform: all its branches count as selected, and its
# directives stay in the code. An unknown condition is an error, so that none is overlooked.

BEGIN {
  apple = platform != "Linux"
  split("Darwin os CoreGraphics ImageIO Vision Compression Network ObjectiveC QuartzCore Combine SwiftUI", names, " ")
  for (i in names) known["canImport(" names[i] ")"] = apple
  known["canImport(UIKit)"] = apple && platform != "macOS"
  known["canImport(WidgetKit)"] = apple && platform != "tvOS"
  known["canImport(AppKit)"] = platform == "macOS" || platform == "macCatalyst"
  split("Glibc FoundationEssentials FoundationNetworking", names, " ")
  for (i in names) known["canImport(" names[i] ")"] = !apple
  # Linux with another C library is not tested.
  known["canImport(Musl)"] = 0
  split("Linux iOS macOS tvOS watchOS visionOS", names, " ")
  for (i in names) known["os(" names[i] ")"] = platform == names[i]
  known["os(iOS)"] = platform == "iOS" || platform == "macCatalyst"
  known["targetEnvironment(macCatalyst)"] = platform == "macCatalyst"
  known["TSAN"] = 0
}

# value: 1 or 0, for a condition without "compiler(...)".
function value(condition,    rest, result, atom, before) {
  sub(/ *\/\/.*/, "", condition)
  rest = condition
  result = ""
  while (match(rest, /[A-Za-z_][A-Za-z_0-9]*(\([^()]*\))?/)) {
    atom = substr(rest, RSTART, RLENGTH)
    if (!(atom in known) && atom !~ /\(/) known[atom] = traits == "all"
    if (!(atom in known)) {
      printf "%s:%d: unknown condition %s\n", FILENAME, FNR, atom > "/dev/stderr"
      exit 1
    }
    result = result substr(rest, 1, RSTART - 1) known[atom]
    rest = substr(rest, RSTART + RLENGTH)
  }
  result = result rest
  gsub(/ /, "", result)
  do {
    before = result
    gsub(/!0/, "1", result)
    gsub(/!1/, "0", result)
    gsub(/\(0\)/, "0", result)
    gsub(/\(1\)/, "1", result)
    while (sub(/1&&1/, "1", result) || sub(/0&&[01]|1&&0/, "0", result)) {}
    # "||" binds less tightly than "&&" and "!".
    if (result !~ /[&!]/) while (sub(/0\|\|0/, "0", result) || sub(/1\|\|[01]|0\|\|1/, "1", result)) {}
  } while (result != before)
  if (result !~ /^[01]$/) {
    printf "%s:%d: cannot evaluate %s\n", FILENAME, FNR, condition > "/dev/stderr"
    exit 1
  }
  return result + 0
}

function directive() { if (mode == "code") print(transparent[depth] ? $0 : "") > copy }

FNR == 1 {
  depth = 0
  selected[0] = 1
  if (mode == "code") {
    if (copy) close(copy)
    copy = out "/" FILENAME
  }
}

/^ *#if / {
  depth++
  transparent[depth] = /compiler\(/
  selected[depth] = taken[depth] = transparent[depth] || value(substr($0, index($0, "#if ") + 4))
  selected[depth] = selected[depth] && selected[depth - 1]
  directive()
  next
}

/^ *#(elseif |else)/ {
  if (!transparent[depth]) {
    selected[depth] = selected[depth - 1] && !taken[depth] && (/#else( |$)/ || value(substr($0, index($0, "#elseif ") + 8)))
    if (selected[depth]) taken[depth] = 1
  }
  directive()
  next
}

/^ *#endif/ {
  directive()
  depth--
  next
}

mode == "lines" && depth && selected[depth] { print FILENAME ":" FNR }

mode == "code" {
  if (!selected[depth]) $0 = ""
  if (/^ *((public|package|internal|private) )?import (Foundation|Dispatch|NIOPosix)$/) sub(/import /, "import Apple")
  gsub(/(^|[ (])Foundation\./, "&.")
  gsub(/Foundation\.\./, "AppleFoundation.")
  print > copy
}
