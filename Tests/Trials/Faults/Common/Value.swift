import CacheCore
import CacheTesting
import Foundation
import HTTPTypes

/// A value under a key, with bytes and metadata derived from a number. An entry that is read states its number, and every byte of
/// it can be checked.
struct Value: Hashable, Sendable {
  static let time = Timestamp(seconds: 1_767_225_600)

  /// The number, unique for each body ever stored.
  var number: UInt64
  /// The length of the body in bytes.
  var length: Int
  /// The number of the metadata update.
  var updateCount: UInt64 = 0
  /// The time of the response or its confirmation.
  var responseTime = Value.time
  /// The lifetime in seconds, or `nil` for the store's setting.
  var lifetime: Int?

  /// Returns a random length: usually a few hundred bytes, sometimes more than the store keeps in memory or reads with one call.
  static func length(_ generator: inout SplitMix) -> Int {
    switch Int.random(in: 0..<100, using: &generator) {
    case 0..<5: 0
    case 5..<70: Int.random(in: 1...3_000, using: &generator)
    case 70..<90: Int.random(in: 3_000...30_000, using: &generator)
    case 90..<97: Int.random(in: 60_000...140_000, using: &generator)
    default: Int.random(in: 140_000...400_000, using: &generator)
    }
  }

  var revision: Revision { Revision(high: 0x6661_756c_7473, low: number) }

  var bytes: Data {
    var generator = SplitMix(state: number)
    var data = Data(count: (length + 7) / 8 * 8)
    data.withUnsafeMutableBytes { bytes in
      let words = bytes.assumingMemoryBound(to: UInt64.self)
      for index in words.indices { words[index] = generator.next() }
    }
    return data.prefix(length)
  }

  var metadata: StoredMetadata {
    var fields = HTTPFields()
    fields[.eTag] = "\"\(number)-\(length)-\(updateCount)\""
    fields[.server] = String(repeating: "s", count: Int((number &+ updateCount &* 7) % 700))
    return StoredMetadata(
      request: HTTPRequest(method: .get, scheme: "https", authority: "faults.example", path: "/\(number)"),
      response: HTTPResponse(status: .ok, headerFields: fields), requestTime: responseTime, responseTime: responseTime,
      revision: revision, freshness: Freshness(generatedAt: responseTime, freshUntil: responseTime),
      expiration: lifetime.map { .after(.seconds($0)) })
  }

  /// Creates the value that an entry's metadata states.
  init?(claimedBy metadata: StoredMetadata) {
    let parts = (metadata.response.headerFields[.eTag] ?? "").split(separator: "\"").first?.split(separator: "-") ?? []
    guard parts.count == 3, let number = UInt64(parts[0]), let length = Int(parts[1]), let updateCount = UInt64(parts[2]) else {
      return nil
    }
    self.init(number: number, length: length, updateCount: updateCount, responseTime: metadata.responseTime)
    if case .after(let lifetime) = metadata.expiration { self.lifetime = Int(lifetime.components.seconds) }
  }

  init(number: UInt64, length: Int, updateCount: UInt64 = 0, responseTime: Timestamp = Value.time, lifetime: Int? = nil) {
    (self.number, self.length, self.updateCount) = (number, length, updateCount)
    (self.responseTime, self.lifetime) = (responseTime, lifetime)
  }

  /// Creates the value of an entry and checks every byte and every field.
  init(of entry: StoredEntry, for key: CacheKey) async throws {
    try self.init(checking: entry.metadata, for: key)
    try require(entry.key == key, "\(key): the entry is that of \(entry.key)")
    let body = try await entry.body.collect()
    try require(body == bytes, "\(key): \(body.count) bytes that were never stored, instead of \(length) of value \(number)")
  }

  /// Creates the value of an entry's metadata and checks every field.
  init(checking metadata: StoredMetadata, for key: CacheKey) throws {
    guard let value = Value(claimedBy: metadata) else { throw FailedCheck("\(key): metadata that was never stored") }
    var expected = value.metadata
    expected.bodyLength = Int64(value.length)
    try require(metadata == expected, "\(key): the metadata is \(metadata), not \(expected)")
    self = value
  }
}

/// The keys by number, four per resource.
enum Keys {
  static func key(_ number: Int) -> CacheKey {
    let resource = "https://faults.example/\(number / 4)"
    return switch number % 4 {
    case 0: CacheKey(resource: resource)
    case 1: CacheKey(resource: resource, variant: "de")
    case 2: CacheKey(resource: resource, variant: "en")
    default: CacheKey(resource: resource, variant: "en", transform: "thumb")
    }
  }
}
