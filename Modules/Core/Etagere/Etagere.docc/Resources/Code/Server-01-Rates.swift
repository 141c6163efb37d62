import AsyncHTTPNetworking
import CacheManager
import Foundation

@main
struct Rates {
  static func main() async throws {
    var configuration = ResourceManager.Configuration()
    configuration.downloader = AsyncHTTPDownloader()
    let manager = ResourceManager(configuration)

    guard let url = URL(string: "http://127.0.0.1:8000/rates.json") else { return }
    for _ in 1...2 {
      let resource = try await manager.load(url)
      print(resource.source, resource.bytesOnWire, "bytes")
    }
  }
}
