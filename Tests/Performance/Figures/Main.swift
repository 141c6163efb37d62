import Foundation

/// Writes the charts and the generated blocks of the Markdown pages, or checks that they match the committed results.
@main
struct Plot {
  static func main() {
    var arguments = CommandLine.arguments.dropFirst()
    let isCheck = arguments.first == "--check"
    if isCheck { arguments.removeFirst() }
    do {
      guard let root = arguments.first, arguments.count == 1 else { throw PlotError("usage: plot [--check] ROOT") }
      let outdated = try run(URL(filePath: root, directoryHint: .isDirectory), isCheck: isCheck)
      for name in outdated { say("\(isCheck ? "differs from the committed figures" : "written"): \(name)") }
      guard !isCheck || outdated.isEmpty else { throw PlotError("run Scripts/plot-bench and commit the result") }
      if isCheck { say("the charts and pages are up to date") }
    } catch {
      FileHandle.standardError.write(Data("\(error)\n".utf8))
      exit(1)
    }
  }

  private static func say(_ line: String) { print(line) }

  /// - Returns: The names of the files that differ from the results. Without `isCheck`, they are replaced.
  private static func run(_ root: URL, isCheck: Bool) throws -> [String] {
    let folder = root.appending(path: "Tests/Performance/Figures")
    let results = Results(runs: try ["Benchmarks", "Gateway", "Service"].map { try .read(folder.appending(path: "\($0).json")) })
    let simulations = try Simulations.read(folder.appending(path: "Simulation"))
    let soak = try Soak.read(folder.appending(path: "Soak.csv"))
    let blocks = Blocks(results: results, simulations: simulations, soak: soak)
    var files: [(name: String, text: String)] = []
    for (suffix, palette) in [("", Palette.light), ("~dark", .dark)] {
      let resources = "Modules/Core/Etagere/Etagere.docc/Resources"
      for chart in Charts.all { files.append(("\(resources)/\(chart.name)\(suffix).svg", try chart.svg(results, palette))) }
      files.append(("\(resources)/soak-memory\(suffix).svg", soak.memoryChart.svg(palette)))
    }
    files.append(("Docs/scale-origin.svg", try simulations.originChart.svg()))
    for name in try pages(root) {
      let text = try String(contentsOf: root.appending(path: name), encoding: .utf8)
      do {
        if let updated = try Page(text: text).updated(blocks) { files.append((name, updated)) }
      } catch {
        throw PlotError("\(name): \(error)")
      }
    }
    var outdated: [String] = []
    for (name, text) in files {
      let file = root.appending(path: name)
      guard (try? String(contentsOf: file, encoding: .utf8)) != text else { continue }
      if !isCheck { try Data(text.utf8).write(to: file) }
      outdated.append(name)
    }
    return outdated
  }

  /// The Markdown pages that may have generated blocks.
  private static func pages(_ root: URL) throws -> [String] {
    var names = ["README.md"]
    for folder in ["Docs", "Modules"] {
      guard let files = FileManager.default.enumerator(atPath: root.appending(path: folder).path) else { continue }
      for case let name as String in files where name.hasSuffix(".md") { names.append("\(folder)/\(name)") }
    }
    return names.sorted()
  }
}
