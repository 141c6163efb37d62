import AsyncHTTPNetworking
import CacheManager
import DiskStore
import ETagValidation
import Foundation
import MemoryStore

@main
struct Rates {
  static func main() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "rates-cache")
    let disk = try DiskCache(folder: folder)
    var configuration = ResourceManager.Configuration()
    configuration.downloader = AsyncHTTPDownloader()
    configuration.memory = MemoryCache(limits: .init(cost: 64 << 20))
    configuration.store = disk
    configuration.validator = ETagValidator(defaultLifetime: .seconds(60), digestSecret: disk.digestSecret)
    let manager = ResourceManager(configuration)

    guard let url = URL(string: "http://127.0.0.1:8000/rates.json") else { return }
    for _ in 1...2 {
      let resource = try await manager.load(url)
      print(resource.source, resource.bytesOnWire, "bytes")
    }
    await manager.close()
    await disk.close()
  }
}
