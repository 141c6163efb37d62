#if Redis
import CacheCore
import Testing

@testable import RedisStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Redis store: the bytes of replies")
struct ReplyReaderTests {
  /// Reads bytes in parts of a size, and returns the replies and the error.
  private func read(_ bytes: some Sequence<UInt8>, parts: Int = .max, limit: Int = 65_536) -> (replies: [String], error: String?)
  {
    var reader = ReplyReader()
    var replies: [String] = []
    let bytes = Array(bytes)
    do throws(CacheError) {
      for start in stride(from: 0, to: bytes.count, by: parts) {
        let part = Array(bytes[start..<min(bytes.count, start + min(parts, bytes.count))])
        try part.withUnsafeBytes { part in
          Result { () throws(CacheError) in
            var rest = part[...]
            while let value = try reader.next(in: &rest, limit: limit) { replies.append(text(value)) }
          }
        }.get()
      }
    } catch {
      return (replies, error.reason)
    }
    return (replies, nil)
  }

  private func text(_ value: RESPValue) -> String {
    switch value {
    case .bytes(let data): "\"\(String(decoding: data, as: UTF8.self))\""
    case .status(let text): text
    case .integer(let number): "\(number)"
    case .null: "null"
    case .array(let values): "[\(values.map(text).joined(separator: " "))]"
    case .error(let message): "error \(message)"
    }
  }

  private static let whole =
    "+OK\r\n-ERR wrong\r\n:-12\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n$4\r\na\r\nb\r\n"
    + "*3\r\n$1\r\na\r\n*2\r\n:9223372036854775807\r\n*1\r\n$-1\r\n+b\r\n+\r\n"

  @Test("replies of every kind are read, in parts of any size", arguments: 1...40)
  func kinds(parts: Int) {
    let (replies, error) = read(Self.whole.utf8, parts: parts)
    #expect(error == nil)
    #expect(
      replies == [
        "OK", "error ERR wrong", "-12", "\"\"", "null", "null", "[]", "\"a\r\nb\"", "[\"a\" [9223372036854775807 [null]] b]", "",
      ])
  }

  @Test(
    "bytes that are not RESP 2 are errors",
    arguments: [
      "?\r\n", "\r\n", "\n", "+OK\n", ":\r\n", ":1x\r\n", ":9223372036854775808\r\n", "$\r\n", "$-2\r\n", "$x\r\n", "*-2\r\n",
      "$9223372036854775808\r\n", "*9223372036854775808\r\n", "$1\r\nabc", "$1\r\na\n\r", "%1\r\n+a\r\n+b\r\n", "~1\r\n+a\r\n",
      ">1\r\n+a\r\n",
      "#t\r\n", ",1.5\r\n", "_\r\n", "(1\r\n", "=5\r\ntxt:a\r\n", "!3\r\nERR\r\n", "HTTP/1.1 200 OK\r\n",
      String(repeating: "*1\r\n", count: 9) + ":1\r\n",
    ])
  func malformed(reply: String) {
    for parts in [1, 3, .max] {
      let (replies, error) = read(reply.utf8, parts: parts)
      #expect(replies.isEmpty)
      #expect(error?.contains("does not speak the Redis protocol") == true)
    }
  }

  @Test(
    "a reply above its limit is refused when its length is announced, or when it reaches the limit",
    arguments: [
      "$65537\r\n", "$500000000\r\n", "$9223372036854775807\r\n", "*1025\r\n", "*2147483647\r\n", "*9223372036854775807\r\n",
      "*2\r\n$40000\r\n" + String(repeating: "a", count: 40_000) + "\r\n$40000\r\n",
      "*1024\r\n" + String(repeating: "*1000\r\n", count: 7),
      "*1024\r\n" + String(repeating: "$0\r\n\r\n", count: 1_024), "+" + String(repeating: "a", count: 16_385),
      "*1000\r\n" + String(repeating: "*1\r\n:1\r\n", count: 1_000),
    ])
  func tooLarge(reply: String) {
    for parts in [1_000, .max] {
      let (replies, error) = read(reply.utf8, parts: parts)
      #expect(replies.isEmpty)
      #expect(error != nil)
    }
  }

  @Test("each reply has a limit of its own")
  func limits() {
    let reply = "$60000\r\n" + String(repeating: "a", count: 60_000) + "\r\n"
    let (replies, error) = read(String(repeating: reply, count: 3).utf8, parts: 1_000)
    #expect(replies.count == 3 && error == nil)
  }

  @Test("random bytes never trap, and need little memory")
  func randomBytes() {
    var state: UInt64 = 7
    func next(_ count: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % count
    }
    let pieces = [
      "*", "$", ":", "+", "-", "\r\n", "\r", "\n", "0", "1", "9", "-1", "4294967296", "9223372036854775807", "a", "%", "65536",
    ]
    for _ in 0..<20_000 {
      var bytes = Array(Self.whole.utf8)
      if next(2) == 0 {
        bytes = (0..<next(12)).flatMap { _ in Array(pieces[next(pieces.count)].utf8) }
      } else {
        for _ in 0...next(3) { bytes[next(bytes.count)] = UInt8(next(256)) }
      }
      let parts = 1 + next(20)
      // The result does not depend on the parts.
      #expect(read(bytes, parts: parts) == read(bytes))
    }
  }
}

@Suite("Redis store: entries with impossible numbers")
struct HostileEntryTests {
  private let key = CacheKey(resource: "https://example.com/a", variant: "v")

  @Test("a length that no body has is damage", arguments: [(1 << 40) + 1, Int64.max, -1, .min])
  func lengths(length: Int64) throws {
    for body in [nil, Data("body".utf8)] {
      let value = try EntryRecord.value(
        key, metadata(), body: body, length: length, bodyID: "0123456789abcdef", storedAt: Timestamp(nanoseconds: .min))
      guard case .damaged = EntryRecord.decode(value) else {
        Issue.record("the length \(length) was accepted")
        continue
      }
    }
  }

  @Test("random changes never trap")
  func randomChanges() throws {
    let value = try EntryRecord.value(
      key, metadata(), body: Data("body".utf8), length: 4, bodyID: "0123456789abcdef", storedAt: Timestamp(nanoseconds: .max))
    var state: UInt64 = 3
    func next(_ count: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % count
    }
    for _ in 0..<20_000 {
      var changed = value.dropFirst(next(4) == 0 ? next(value.count) : 0)
      for _ in 0...next(3) where changed.count > 4 { changed[changed.startIndex + next(changed.count - 4)] = UInt8(next(256)) }
      if case .entry(let record) = EntryRecord.decode(Data(changed)) { _ = record.body(in: Data(changed)) }
    }
  }
}
#endif
