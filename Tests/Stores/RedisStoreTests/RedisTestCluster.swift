#if Redis
import CacheCore
import CacheTesting
import LocalRedis
import RedisStore

/// A cluster of three servers without replicas.
final class RedisTestCluster: Sendable {
  let servers: [RedisServer]

  init() async throws {
    var servers: [RedisServer] = []
    for _ in 0..<3 { servers.append(try await RedisServer(isCluster: true)) }
    self.servers = servers
    for (index, server) in servers.enumerated() {
      let first = index * 16_384 / 3
      try server.require(["CLUSTER", "ADDSLOTS"] + (first..<(index + 1) * 16_384 / 3).map(String.init))
      // Servers that meet with the same epoch choose new ones at some later time. A server whose new epoch is above that of a
      // migration would claim its slot again.
      try server.require(["CLUSTER", "SET-CONFIG-EPOCH", "\(index + 1)"])
      if index > 0 {
        try servers[0].require(["CLUSTER", "MEET", "127.0.0.1", "\(server.portNumber)", "\(server.busPortNumber)"])
      }
    }
    // Each server must know all slots.
    try await Polling.until {
      try servers.allSatisfy { try $0.run(["CLUSTER", "INFO"]).contains("cluster_state:ok") }
        && servers.allSatisfy { try $0.run(["CLUSTER", "INFO"]).contains("cluster_known_nodes:3") }
    }
  }

  func cache(_ change: (inout RedisCache.Configuration) -> Void = { _ in }) throws -> RedisCache {
    try RedisCache(
      cluster: [servers[0].url],
      configuration: .init {
        $0.timeout = .seconds(60)
        $0.connectTimeout = .seconds(60)
        change(&$0)
      })
  }
}
#endif
