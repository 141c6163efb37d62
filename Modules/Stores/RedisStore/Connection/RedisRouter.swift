#if Redis
internal import CacheCore
internal import NIOSSL

/// The connections to a single server or to a cluster.
protocol RedisRouter: Sendable {
  /// Sends commands about one hash tag together and returns their replies.
  func send(_ commands: [RedisCommand], for tag: HashTag) async throws(CacheError) -> [RESPValue]

  /// Sends commands, each about its own hash tag, and returns their replies in the same order.
  func send(_ calls: [RoutedCommand]) async throws(CacheError) -> [RESPValue]

  /// The servers that together have all keys.
  func primaries() async throws(CacheError) -> [RedisNode]

  /// The servers that have been used.
  var nodes: [RedisNode] { get }
  var redirections: Int { get }
  func close()
}

/// A command about one hash tag.
struct RoutedCommand: Sendable {
  let command: RedisCommand
  let tag: HashTag
}

/// A single server.
struct SingleServer: RedisRouter {
  let node: RedisNode

  func send(_ commands: [RedisCommand], for tag: HashTag) async throws(CacheError) -> [RESPValue] {
    try await node.send(commands)
  }

  func send(_ calls: [RoutedCommand]) async throws(CacheError) -> [RESPValue] { try await node.send(calls.map(\.command)) }

  func primaries() async throws(CacheError) -> [RedisNode] { [node] }

  var nodes: [RedisNode] { [node] }

  var redirections: Int { 0 }

  func close() { node.close() }
}

/// The hash slot of a key in a cluster: the CRC16 of its hash tag, modulo 16,384 (Redis cluster specification, "Key distribution
/// model").
enum HashSlot {
  static let count = 16_384

  private static let table: [UInt16] = (0..<256).map { byte in
    (0..<8).reduce(UInt16(byte) << 8) { crc, _ in crc & 0x8000 == 0 ? crc << 1 : crc << 1 ^ 0x1021 }
  }

  static func of(_ tag: some Sequence<UInt8>) -> Int {
    Int(tag.reduce(UInt16(0)) { crc, byte in crc << 8 ^ table[Int(crc >> 8 ^ UInt16(byte))] }) % count
  }
}
#endif
