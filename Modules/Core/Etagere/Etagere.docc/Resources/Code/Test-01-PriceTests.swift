import Etagere
import Foundation

struct PriceList: Sendable {
  func price(at url: URL) async throws(CacheError) -> String {
    String(decoding: try await ResourceManager.shared.load(url).data, as: UTF8.self)
  }
}
