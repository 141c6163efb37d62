#if Redis
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A reader of replies (the Redis serialization protocol, RESP, version 2), which arrive in parts.
///
/// The server decides nothing about memory: each reply has a limit that follows from its command, a byte counts when the server
/// announces it, and each value counts as ``valueSize`` further bytes.
struct ReplyReader {
  /// The size in bytes that each value counts, in addition to its bytes. It bounds the time and the memory for small values.
  static let valueSize = 256
  /// The maximum size in bytes of a line: a number, a status or an error.
  private static let lineLimit = 16_384
  /// The maximum number of arrays inside each other. The commands of a store get three.
  private static let depthLimit = 8

  /// An array that has not arrived completely.
  private struct OpenArray {
    var values: [RESPValue] = []
    var missing: Int
  }

  /// The start of a line that has not arrived completely.
  private var line: [UInt8] = []
  /// The part of a bulk string that has arrived, with its line end.
  private var bulk = Data()
  private var missingInBulk = 0
  private var arrays: [OpenArray] = []
  /// The bytes that the rest of the reply may have, or `nil` before a reply.
  private var budget: Int?

  /// Reads received bytes up to the end of the next reply. Returns `nil` if the bytes end before it.
  ///
  /// - Parameters:
  ///   - rest: The received bytes. Those that have been read are removed.
  ///   - limit: The maximum size in bytes of a reply that begins here.
  /// - Throws: `CacheError.Code.storeUnavailable` if the bytes are not RESP or exceed the limit. The reader cannot be used
  ///   afterwards.
  mutating func next(in rest: inout Slice<UnsafeRawBufferPointer>, limit: Int) throws(CacheError) -> RESPValue? {
    while !rest.isEmpty {
      if budget == nil { budget = limit }
      guard let value = try nextValue(in: &rest), let reply = completing(value) else { continue }
      budget = nil
      return reply
    }
    return nil
  }

  /// Returns the next value that is no array with elements, or `nil` if more bytes or elements must follow.
  private mutating func nextValue(in rest: inout Slice<UnsafeRawBufferPointer>) throws(CacheError) -> RESPValue? {
    if missingInBulk > 0 { return try restOfBulk(in: &rest) }
    let end = rest.firstIndex(of: UInt8(ascii: "\n"))
    let part = rest[rest.startIndex..<(end ?? rest.endIndex)]
    guard line.count + part.count <= Self.lineLimit else { throw Self.failure("a line is too long") }
    line.append(contentsOf: part)
    rest = rest[(end.map { $0 + 1 } ?? rest.endIndex)...]
    guard end != nil else { return nil }
    defer { line.removeAll(keepingCapacity: true) }
    guard line.count >= 2, line.removeLast() == UInt8(ascii: "\r") else { throw Self.failure("a line has no end") }
    try spend(Self.valueSize + line.count)
    let text = String(decoding: line.dropFirst(), as: UTF8.self)
    switch line[0] {
    case UInt8(ascii: "+"): return .status(text)
    case UInt8(ascii: "-"): return .error(text)
    case UInt8(ascii: ":"):
      guard let number = Int64(text) else { throw Self.failure("'\(text)' is not a number") }
      return .integer(number)
    case UInt8(ascii: "$"):
      guard let count = try count(text) else { return .null }
      try spend(count)
      bulk = Data(capacity: count + 2)
      missingInBulk = count + 2
      return nil
    case UInt8(ascii: "*"):
      guard let count = try count(text) else { return .null }
      guard count > 0 else { return .array([]) }
      // Each of the values counts when it arrives.
      guard count <= (budget ?? 0) / Self.valueSize else { throw Self.tooLarge }
      guard arrays.count < Self.depthLimit else { throw Self.failure("too many arrays inside each other") }
      arrays.append(OpenArray(missing: count))
      return nil
    default: throw Self.failure("a reply begins with '\(String(decoding: line.prefix(1), as: UTF8.self))'")
    }
  }

  private mutating func restOfBulk(in rest: inout Slice<UnsafeRawBufferPointer>) throws(CacheError) -> RESPValue? {
    let part = rest.prefix(missingInBulk)
    bulk.append(contentsOf: UnsafeRawBufferPointer(rebasing: part))
    rest = rest.dropFirst(part.count)
    missingInBulk -= part.count
    guard missingInBulk == 0 else { return nil }
    guard bulk.suffix(2).elementsEqual("\r\n".utf8) else { throw Self.failure("a string has another length than announced") }
    bulk.removeLast(2)
    defer { bulk = Data() }
    return .bytes(bulk)
  }

  /// Adds a value to the array that it belongs to. Returns the reply if it is complete.
  private mutating func completing(_ value: RESPValue) -> RESPValue? {
    var value = value
    while let last = arrays.indices.last {
      arrays[last].values.append(value)
      arrays[last].missing -= 1
      guard arrays[last].missing == 0 else { return nil }
      value = .array(arrays.removeLast().values)
    }
    return value
  }

  /// Returns the length of a string or an array, or `nil` for the null value.
  private func count(_ text: String) throws(CacheError) -> Int? {
    guard let count = Int(text), count >= -1 else { throw Self.failure("'\(text)' is not a length") }
    return count < 0 ? nil : count
  }

  private mutating func spend(_ bytes: Int) throws(CacheError) {
    let left = budget ?? 0
    guard bytes <= left else { throw Self.tooLarge }
    budget = left - bytes
  }

  private static let tooLarge = failure("a reply is larger than its command allows")

  private static func failure(_ reason: String) -> CacheError {
    CacheError(.storeUnavailable, reason: "the server does not speak the Redis protocol: \(reason)")
  }
}

/// A reply of the server (the Redis serialization protocol, RESP, version 2).
enum RESPValue: Sendable {
  /// A bulk string.
  case bytes(Data)
  /// A simple string.
  case status(String)
  case integer(Int64)
  case null
  case array([RESPValue])
  /// An error with its message, which begins with a code in capital letters.
  case error(String)

  var bytes: Data? { if case .bytes(let data) = self { data } else { nil } }

  var integer: Int64? { if case .integer(let value) = self { value } else { nil } }

  var array: [RESPValue]? { if case .array(let values) = self { values } else { nil } }

  /// The text of a simple or bulk string.
  var text: String? {
    switch self {
    case .bytes(let data): String(decoding: data, as: UTF8.self)
    case .status(let text): text
    default: nil
    }
  }
}
#endif
