import CacheTesting
import Etagere
import Foundation
import Testing

struct PriceList: Sendable {
  var manager = ResourceManager.shared

  func price(at url: URL) async throws(CacheError) -> String {
    String(decoding: try await manager.load(url).data, as: UTF8.self)
  }
}

@Test("the price comes from the origin")
func price() async throws {
  let url = try #require(URL(string: "https://example.com/price"))
  let network = ScriptedDownloader()
  network.respond(to: url, with: .ok("42"))
  let prices = PriceList(manager: ResourceManager(try .standard(folder: nil, downloader: network)))

  #expect(try await prices.price(at: url) == "42")
}
