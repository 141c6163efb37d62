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

@Test("an unchanged price is confirmed without a body")
func unchangedPrice() async throws {
  let url = try #require(URL(string: "https://example.com/price"))
  let network = ScriptedDownloader()
  network.respond(to: url, with: .ok("42", etag: "\"v1\""), .notModified(etag: "\"v1\""))
  let prices = PriceList(manager: ResourceManager(try .standard(folder: nil, downloader: network)))

  #expect(try await prices.price(at: url) == "42")
  #expect(try await prices.price(at: url) == "42")
  #expect(network.requests.last?.headerFields[.ifNoneMatch] == "\"v1\"")
  try network.verify()
}
