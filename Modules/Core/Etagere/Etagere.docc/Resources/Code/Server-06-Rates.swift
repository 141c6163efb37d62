import AsyncHTTPNetworking
import CacheManager
import ETagValidation
import Foundation
import MemoryStore

@main
struct Rates {
  static func main() async throws {
    var configuration = ResourceManager.Configuration()
    configuration.downloader = AsyncHTTPDownloader()
    configuration.memory = MemoryCache(limits: .init(cost: 64 << 20))
    configuration.validator = ETagValidator()
    let manager = ResourceManager(configuration)

    guard let url = URL(string: "http://127.0.0.1:8000/rates.json") else { return }
    let clients = (1...100).map { _ in Task { try await manager.load(url).data } }
    var sizes: Set<Int> = []
    for client in clients { sizes.insert(try await client.value.count) }
    print(clients.count, "clients,", sizes)
    await manager.close(within: .seconds(5))
  }
}
