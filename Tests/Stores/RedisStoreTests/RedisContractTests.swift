#if Redis
import CacheCore
import CacheTesting
import LocalRedis
import RedisStore
import StoreComposition
import Testing

@Suite("Redis store: the store contract", .enabled(if: RedisServer.isInstalled))
struct RedisContractTests {
  @Test("the contract holds", arguments: StoreContract.cases)
  func contract(_ statement: StoreContract.Case) async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    try await statement.run(on: cache)
    await cache.close()
  }

  @Test("the contract holds on a cluster")
  func cluster() async throws {
    let cluster = try await RedisTestCluster()
    for (number, statement) in StoreContract.cases.enumerated() {
      let cache = try cluster.cache { $0.namespace = "case-\(number)" }
      do {
        try await statement.run(on: cache)
      } catch {
        Issue.record(error, "\(statement)")
      }
      await cache.close()
    }
  }

  @Test("the contract holds below a store in memory", arguments: StoreContract.cases)
  func layered(_ statement: StoreContract.Case) async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    try await statement.run(on: try LayeredStore([VolatileStore(), cache]))
    await cache.close()
  }
}
#endif
