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
    "the program ends with status 0", .timeLimit(.minutes(5)),
    arguments: ["FolderAsNetwork", "JSONClient", "MemoryAlone", "OwnBackend", "SessionClient"])
  func status(_ name: String) async throws {
    let process = Process()
    process.executableURL = Self.folder.appending(path: name)
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
    let text = try String(contentsOf: output, encoding: .utf8)
    #expect(process.terminationStatus == 0, "\(text)")
    #expect(!text.isEmpty)
  }
}
