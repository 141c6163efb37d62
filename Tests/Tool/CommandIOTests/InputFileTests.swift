import CacheCore
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

@Suite("Input files and descriptors")
struct InputFileTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Returns both ends of a pipe whose calls do not wait.
  private func nonBlockingPipe() -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    for end in ends { #expect(fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK) == 0) }
    return (ends[0], ends[1])
  }

  @Test("all bytes go through a non-blocking pipe that is smaller than they are")
  func nonBlocking() async throws {
    let (reading, writing) = nonBlockingPipe()
    let bytes = Data((0..<700_000).map { UInt8(truncatingIfNeeded: $0 * 31 >> 3) })
    let received = Pending { (try? Descriptor(number: reading).read(limit: 1 << 20)) ?? Data() }
    try Descriptor(number: writing).write(bytes)
    close(writing)
    #expect(await received.value == bytes)
    close(reading)
  }

  @Test("a regular file, a link, and an open descriptor are read to the end")
  func read() throws {
    try folder.write("some text", "file")
    try folder.write("", "empty")
    #expect(symlink("file", folder / "link") == 0)
    let file = try FileHandle(forReadingFrom: URL(filePath: folder / "file"))
    #expect(try file.read(upToCount: 5) == Data("some ".utf8))
    #expect(try InputFile(folder / "file").read(limit: 1) == Data("some text".utf8))
    #expect(try InputFile(folder / "link").read(limit: 1) == Data("some text".utf8))
    #expect(try InputFile(folder / "empty").read(limit: 1) == Data())
    #expect(try InputFile("/dev/fd/\(file.fileDescriptor)").read(limit: 4) == Data("text".utf8))
    #expect(try InputFile("/dev/null").read(limit: 0) == Data())
  }

  @Test("a device without an end is an error")
  func endless() throws {
    let error = #expect(throws: CacheError.self) { try InputFile("/dev/zero").read(limit: 100_000) }
    #expect(error?.code == .bodyTooLarge && error?.path == "/dev/zero")
  }

  @Test("an error has the path and the reason")
  func errors() throws {
    for (path, number) in [("", ENOENT), (folder / "none", ENOENT), (folder.path, EISDIR), ("/dev/fd/9999", EBADF)] {
      let error = #expect(throws: CacheError.self) { try InputFile(path).read(limit: 1) }
      #expect(error?.errno == number && error?.path == path && error?.reason == String(cString: strerror(number)))
    }
  }

  @Test("a file is open to others by the rule of ssh", arguments: [(0o600, false), (0o400, false), (0o640, true), (0o604, true)])
  func openToOthers(_ mode: mode_t, _ expected: Bool) throws {
    try folder.write("secret", "keys")
    #expect(chmod(folder / "keys", mode) == 0)
    #expect(InputFile(folder / "keys").isOpenToOthers == expected)
    #expect(!InputFile("/dev/null").isOpenToOthers && !InputFile(folder / "none").isOpenToOthers)
  }
}

@Suite("Lists")
struct ListLineTests {
  private func lines(_ bytes: some Sequence<UInt8>) -> [String] {
    ListLine.all(in: Data(bytes)).map { "\($0.number) \($0.text ?? "(invalid)")" }
  }

  @Test(
    "lines end with LF, CRLF or CR, and comments and blank lines are left out",
    arguments: [
      ("a\nb", ["1 a", "2 b"]), ("a\r\nb\r\n", ["1 a", "2 b"]), ("a\rb\r", ["1 a", "2 b"]), ("a\n\rb", ["1 a", "3 b"]),
      ("\u{FEFF}a\nb", ["1 a", "2 b"]), ("\u{FEFF}# a\n\u{FEFF}b", ["2 b"]), ("\u{FEFF}", []), ("", []), ("\n\n", []),
      (" \t a b\u{A0}\n\t# c\n \n#\nd#", ["1 a b", "5 d#"]), ("ü\u{2028}x", ["1 ü\u{2028}x"]),
      ("a\0b\nc", ["1 (invalid)", "2 c"]),
    ])
  func text(_ list: String, _ expected: [String]) { #expect(lines(list.utf8) == expected) }

  @Test("a line that is not UTF-8 is invalid, and the others are read")
  func invalid() {
    #expect(lines(Array("a\n".utf8) + [0x62, 0xFC, 0x0D, 0x0A, 0x63]) == ["1 a", "2 (invalid)", "3 c"])
    #expect(lines([0xED, 0xA0, 0x80]) == ["1 (invalid)"])
    #expect(lines(Array("a\n # ".utf8) + [0xFC] + Array("\nb".utf8)) == ["1 a", "3 b"])
  }

  @Test("a list in UTF-16 is one invalid line")
  func utf16() throws {
    for encoding in [String.Encoding.utf16LittleEndian, .utf16BigEndian] {
      #expect(lines(try #require("\u{FEFF}a\nb\n".data(using: encoding))) == ["1 (invalid)"])
    }
  }
}
