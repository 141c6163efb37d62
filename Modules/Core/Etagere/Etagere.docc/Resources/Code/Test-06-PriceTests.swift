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

@Test("the last price is used offline")
func offline() async throws {
  let url = try #require(URL(string: "https://example.com/price"))
  let network = ScriptedDownloader()
  network.respond(to: url, with: .ok("42", etag: "\"v1\""), .failure(.offline))
  let prices = PriceList(manager: ResourceManager(try .standard(folder: nil, downloader: network)))

  #expect(try await prices.price(at: url) == "42")
  #expect(try await prices.price(at: url) == "42")
}

@Test("without a cached price, the error says why")
func offlineWithoutCache() async throws {
  let url = try #require(URL(string: "https://example.com/price"))
  let network = ScriptedDownloader()
  network.respond(to: url, with: .failure(.offline))
  let prices = PriceList(manager: ResourceManager(try .standard(folder: nil, downloader: network)))

  await #expect { try await prices.price(at: url) } throws: { ($0 as? CacheError)?.code == .offline }
}
