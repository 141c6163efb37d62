import Etagere
import Foundation

struct PriceList: Sendable {
  var manager = ResourceManager.shared

  func price(at url: URL) async throws(CacheError) -> String {
    String(decoding: try await manager.load(url).data, as: UTF8.self)
  }
}
