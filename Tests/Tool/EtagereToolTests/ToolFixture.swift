#if Tool
import CacheTesting
import Etagere
import Foundation
import LoopbackOrigin

/// The result of one run of the tool: its exit status and both output streams.
struct ToolRun {
  var status: Int32
  var output: Data
  /// The lines of standard error.
  var errors: [String]

  var lines: [String] { Self.lines(output) }

  static func lines(_ data: Data) -> [String] { String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init) }

  /// Decodes every line of standard output as JSON.
  func documents<Document: Decodable>(_ type: Document.Type = Document.self) throws -> [Document] {
    try lines.map { try JSONDecoder().decode(type, from: Data($0.utf8)) }
  }
}

/// The JSON document of one resource.
struct LoadDocument: Decodable {
  struct Failure: Decodable {
    var code: String
    var message: String
    var exitStatus: Int32
  }

  var url: String
  var source: String?
  var validation: String?
  var status: Int?
  var bytes: Int?
  var bytesOnWire: Int64?
  var file: String?
  var error: Failure?
}

/// A temporary folder with a cache folder, in which the real executable runs.
final class ToolFixture: Sendable {
  let path: String

  init() throws {
    path = FileManager.default.resolvedTemporaryPath + "/etagere-tool-\(Revision.random())"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  var cache: String { path + "/cache" }

  /// The files of the cache entries, sorted.
  var entryFiles: [String] { files(below: cache + "/etagere-1/entries") }

  func files(below folder: String) -> [String] {
    let names = (try? FileManager.default.subpathsOfDirectory(atPath: folder)) ?? []
    return names.map { "\(folder)/\($0)" }.filter { path in
      var isFolder: ObjCBool = false
      return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && !isFolder.boolValue
    }.sorted()
  }

  func read(_ name: String) throws -> Data { try Data(contentsOf: URL(filePath: "\(path)/\(name)")) }

  @discardableResult
  func write(_ text: String, _ name: String) throws -> String {
    let file = "\(path)/\(name)"
    // Other users cannot read it, because it may have signing keys.
    guard FileManager.default.createFile(atPath: file, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600]) else {
      throw CacheError(.fileSystem, reason: "cannot write a file of the test", path: file)
    }
    return file
  }

  /// Runs `etagere-cli` with the cache folder of this fixture.
  func etagere(_ arguments: String..., input: String? = nil) async throws -> ToolRun {
    try await run(arguments + ["--cache-dir", cache], input: input)
  }

  /// Runs `etagere-cli` with only these arguments, in the folder of this fixture.
  ///
  /// - Parameters:
  ///   - arguments: The arguments.
  ///   - input: The bytes of standard input.
  ///   - output: The path of standard output, or `nil` for a temporary file that is read afterwards.
  ///   - program: The program to run, or `nil` for the tool.
  ///   - environment: The variables that are set for the program. `nil` removes a variable.
  func run(
    _ arguments: [String], input: String? = nil, output: String? = nil, program: String? = nil,
    environment: [String: String?] = [:]
  ) async throws -> ToolRun {
    await Self.limit.begin()
    defer { Self.limit.end() }
    let name = "\(path)/\(Revision.random())"
    defer { for suffix in [".in", ".out", ".err"] { try? FileManager.default.removeItem(atPath: name + suffix) } }
    for (suffix, text) in [(".in", input ?? ""), (".out", ""), (".err", "")] {
      try Data(text.utf8).write(to: URL(filePath: name + suffix))
    }
    let process = Process()
    process.executableURL = try program.map { URL(filePath: $0) } ?? Self.executable()
    process.arguments = arguments
    process.currentDirectoryURL = URL(filePath: path, directoryHint: .isDirectory)
    // Requests to the loopback interface must not go through a proxy.
    var variables = ProcessInfo.processInfo.environment.filter { !$0.key.lowercased().hasSuffix("_proxy") }
    for (name, value) in environment { variables[name] = value }
    process.environment = variables
    // Files instead of pipes: a process does not wait for a reader.
    process.standardInput = try FileHandle(forReadingFrom: URL(filePath: name + ".in"))
    process.standardOutput = try FileHandle(forWritingTo: URL(filePath: output ?? name + ".out"))
    process.standardError = try FileHandle(forWritingTo: URL(filePath: name + ".err"))
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      process.terminationHandler = { _ in continuation.resume() }
      do {
        try process.run()
      } catch {
        continuation.resume(throwing: error)
      }
    }
    return ToolRun(
      status: process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus,
      output: try Data(contentsOf: URL(filePath: name + ".out")),
      errors: ToolRun.lines(try Data(contentsOf: URL(filePath: name + ".err"))))
  }

  /// Runs lines of a shell, in which `etagere-cli` is the tool.
  func shell(_ script: String) async throws -> ToolRun {
    let folder = try Self.executable().deletingLastPathComponent().path
    return try await run(["-c", "PATH='\(folder)':\"$PATH\"; \(script)"], program: "/bin/sh")
  }

  private static let limit = ProcessLimit(4)

  /// Returns the executable, which is in the same folder as the test bundle.
  static func executable() throws -> URL {
    let bundles = Bundle.allBundles.filter { $0.bundlePath.hasSuffix(".xctest") }.map { $0.bundleURL.deletingLastPathComponent() }
    let program = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
    let candidates = (bundles + [program]).map { $0.appending(path: "etagere-cli") }
    guard let found = candidates.first(where: { FileManager.default.isExecutableFile(atPath: $0.path) }) else {
      throw CacheError(.other, reason: "no executable etagere-cli in \(candidates.map(\.path))")
    }
    return found
  }
}

/// A limit on the number of processes that run at the same time.
final class ProcessLimit: Sendable {
  private let gate = Gate()

  init(_ count: Int) { gate.letThrough(count) }

  func begin() async { await gate.pass() }

  func end() { gate.letThrough() }
}

/// Runs a test against a new origin, and stops the origin afterwards.
func withOrigin(_ body: (OriginServer) async throws -> Void) async throws {
  let origin = try await OriginServer.start()
  do {
    try await body(origin)
  } catch {
    await origin.stop()
    throw error
  }
  await origin.stop()
}

/// Returns binary data with all byte values.
func bytes(_ count: Int, seed: Int = 0) -> Data {
  Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &+ seed) })
}
#endif
