import Foundation
import Testing

@Suite("The example programs")
struct ExampleProgramTests {
  /// The folder of the built programs, which also contains the test bundle.
  private static var folder: URL {
    let bundle = Bundle.allBundles.map(\.bundleURL).first { $0.pathExtension == "xctest" }
    return (bundle ?? URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath()).deletingLastPathComponent()
  }

  @Test(
    "the program ends with status 0", .timeLimit(.minutes(30)),
    arguments: ["FolderAsNetwork", "JSONClient", "MemoryAlone", "OwnBackend", "PhotoWidget", "SessionClient"])
  func status(_ name: String) async throws {
    let (status, output) = try await run(Self.folder.appending(path: name))
    #expect(status == 0, "\(output)")
    #expect(!output.isEmpty)
  }
}

/// Runs a program to its end, and returns its status and standard output.
func run(_ program: URL, _ arguments: [String] = []) async throws -> (status: Int32, output: String) {
  let process = Process()
  (process.executableURL, process.arguments) = (program, arguments)
  let output = FileManager.default.temporaryDirectory.appending(path: "example-\(UUID().uuidString)")
  defer { try? FileManager.default.removeItem(at: output) }
  try Data().write(to: output)
  process.standardOutput = try FileHandle(forWritingTo: output)
  try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
    process.terminationHandler = { _ in continuation.resume() }
    do {
      try process.run()
    } catch {
      continuation.resume(throwing: error)
    }
  }
  return (process.terminationStatus, try String(contentsOf: output, encoding: .utf8))
}
