import CacheCore
import CacheTesting
import Foundation
import Testing

@testable import CommandIO

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("Output files")
struct OutputFileTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func error(_ path: String, _ bytes: Data = Data("new".utf8)) -> CacheError? {
    do throws(CacheError) {
      try OutputFile(path).write(bytes)
      return nil
    } catch {
      return error
    }
  }

  @Test("a new file is complete, and readable as other new files are")
  func created() throws {
    try OutputFile(folder / "new").write(Data("hello".utf8))
    #expect(try folder.read("new") == "hello")
    #expect(FileManager.default.createFile(atPath: folder / "other", contents: nil))
    #expect(try folder.mode("new") == folder.mode("other"))
    #expect(try folder.names == ["new", "other"])
  }

  @Test("an existing file is replaced in one step, and keeps its permissions", arguments: [0o600, 0o640, 0o755])
  func replaced(_ mode: mode_t) throws {
    // Given
    try folder.write("the old content", "file")
    #expect(chmod(folder / "file", mode) == 0)
    let reader = try FileHandle(forReadingFrom: URL(filePath: folder / "file"))

    // When
    try OutputFile(folder / "file").write(Data("new".utf8))

    // Then a process that has opened the old file still reads all of it
    #expect(try folder.read("file") == "new")
    #expect(try folder.mode("file") == mode)
    #expect(try reader.readToEnd() == Data("the old content".utf8))
    #expect(try folder.names == ["file"])
  }

  @Test("all names of a file have the new content")
  func hardLink() throws {
    try folder.write("the old content", "file")
    #expect(link(folder / "file", folder / "name") == 0)
    try OutputFile(folder / "name").write(Data("new".utf8))
    #expect(try folder.read("file") == "new")
    #expect(try folder.names == ["file", "name"])
  }

  @Test("a link stays a link, and its target is written", arguments: [true, false])
  func links(exists: Bool) throws {
    // Given: a relative link to an absolute link to a file in another folder
    try FileManager.default.createDirectory(atPath: folder / "below", withIntermediateDirectories: false)
    if exists { try folder.write("old", "below/file") }
    #expect(symlink("below/second", folder / "first") == 0)
    #expect(symlink(folder / "below/file", folder / "below/second") == 0)

    // When
    try OutputFile(folder / "first").write(Data("new".utf8))

    // Then
    #expect(try folder.read("below/file") == "new")
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: folder / "first") == "below/second")
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: folder / "below/second") == folder / "below/file")
    #expect(try folder.names == ["below", "first"])
  }

  @Test("a FIFO receives the bytes and stays a FIFO")
  func fifo() async throws {
    // Given
    #expect(mkfifo(folder / "fifo", 0o600) == 0)
    let (path, bytes) = (folder / "fifo", Data(repeating: 7, count: 300_000))
    let received = Pending { (try? InputFile(path).read(limit: 1 << 20)) ?? Data() }

    // When
    try OutputFile(path).write(bytes)

    // Then
    #expect(await received.value == bytes)
    #expect(try folder.type("fifo") == S_IFIFO)
  }

  @Test("an open descriptor receives the bytes at its position", arguments: ["/dev/fd", "/proc/self/fd"])
  func descriptors(_ names: String) throws {
    guard FileManager.default.fileExists(atPath: names) else { return }
    try folder.write("", "log")
    let log = try FileHandle(forWritingTo: URL(filePath: folder / "log"))
    try log.write(contentsOf: Data("first ".utf8))
    #expect(symlink("\(names)/\(log.fileDescriptor)", folder / "link") == 0)
    try OutputFile("\(names)/\(log.fileDescriptor)").write(Data("second ".utf8))
    try OutputFile(folder / "link").write(Data("third".utf8))
    #expect(try folder.read("log") == "first second third")
  }

  @Test("a path of standard output is recognized")
  func standardOutput() throws {
    #expect(symlink("/dev/stdout", folder / "link") == 0)
    for path in ["/dev/stdout", "/dev/fd/1", "/dev/../dev/fd/1", folder / "link"] {
      #expect(OutputFile(path).isStandardOutput, "\(path)")
    }
    for path in ["/dev/stderr", "/dev/null", "1", "fd/1", folder / "1", "/dev/fd/", ""] {
      #expect(!OutputFile(path).isStandardOutput, "\(path)")
    }
  }

  #if os(Linux)
  @Test("a link to a device stays a link, and the error is that of the device")
  func device() throws {
    #expect(symlink("/dev/full", folder / "full") == 0)
    #expect(error(folder / "full")?.errno == ENOSPC)
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: folder / "full") == "/dev/full")
    #expect(try folder.names == ["full"])
  }
  #endif

  @Test("an error names the path and the reason")
  func errors() throws {
    try folder.write("", "file")
    #expect(symlink("loop", folder / "loop") == 0)
    for (path, number) in [
      ("", ENOENT), (folder / "none/file", ENOENT), (folder / "file/below", ENOTDIR), (folder.path, EISDIR),
      (folder / "loop", ELOOP), ("/dev/fd/9999", EBADF),
    ] {
      let error = error(path)
      #expect(error?.code == .fileSystem && error?.errno == number, "\(path): \(String(describing: error))")
      #expect(error?.description == "cannot write '\(path)': \(String(cString: strerror(number)))")
    }
    #expect(try folder.names == ["file", "loop"])
  }

  @Test("a file that may be written is written even if its folder may not be", .enabled(if: geteuid() != 0))
  func closedFolder() throws {
    try FileManager.default.createDirectory(atPath: folder / "closed", withIntermediateDirectories: false)
    try folder.write("the old content", "closed/file")
    #expect(chmod(folder / "closed", 0o555) == 0)
    defer { chmod(folder / "closed", 0o755) }
    try OutputFile(folder / "closed/file").write(Data("new".utf8))
    #expect(try folder.read("closed/file") == "new")
    #expect(error(folder / "closed/other")?.errno == EACCES)
    #expect(chmod(folder / "closed/file", 0o444) == 0)
    #expect(error(folder / "closed/file")?.errno == EACCES)
  }

  @Test("a file contains bytes only if it is regular and has exactly these")
  func contains() throws {
    try folder.write("abc", "file")
    #expect(mkfifo(folder / "fifo", 0o600) == 0)
    #expect(OutputFile(folder / "file").contains(Data("abc".utf8)))
    for text in ["abd", "ab", "abcd", ""] { #expect(!OutputFile(folder / "file").contains(Data(text.utf8))) }
    for name in ["none", "fifo", ""] { #expect(!OutputFile(folder / name).contains(Data())) }
  }
}

/// The value of work that blocks. It starts at once on a thread of its own, and needs none of the cooperative pool.
struct Pending<Value: Sendable>: Sendable {
  private let stream: AsyncStream<Value>

  init(_ work: @escaping @Sendable () -> Value) {
    let (stream, continuation) = AsyncStream<Value>.makeStream()
    self.stream = stream
    DispatchQueue.global().async {
      continuation.yield(work())
      continuation.finish()
    }
  }

  var value: Value? {
    get async { await stream.first { _ in true } }
  }
}

final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    path = "\(FileManager.default.resolvedTemporaryPath)/etagere-io-\(Revision.random())"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  static func / (folder: TemporaryFolder, name: String) -> String { "\(folder.path)/\(name)" }

  var names: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() } }

  func write(_ text: String, _ name: String) throws { try Data(text.utf8).write(to: URL(filePath: self / name)) }

  func read(_ name: String) throws -> String { String(decoding: try Data(contentsOf: URL(filePath: self / name)), as: UTF8.self) }

  func mode(_ name: String) throws -> mode_t { try status(name).st_mode & 0o7777 }

  func type(_ name: String) throws -> mode_t { try status(name).st_mode & S_IFMT }

  private func status(_ name: String) throws -> stat {
    var status = stat()
    try #require(lstat(self / name, &status) == 0)
    return status
  }
}
