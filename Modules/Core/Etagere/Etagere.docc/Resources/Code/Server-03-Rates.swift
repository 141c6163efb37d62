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
    configuration.validator = ETagValidator(defaultLifetime: .seconds(60))
    let manager = ResourceManager(configuration)

    guard let url = URL(string: "http://127.0.0.1:8000/rates.json") else { return }
    for _ in 1...2 {
      let resource = try await manager.load(url)
      print(resource.source, resource.bytesOnWire, "bytes")
    }
  }
}
