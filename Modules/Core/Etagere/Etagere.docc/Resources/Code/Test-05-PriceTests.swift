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

@Test("a price is used for one minute")
func freshForOneMinute() async throws {
  let url = try #require(URL(string: "https://example.com/price"))
  let clock = ManualClock()
  let network = ScriptedDownloader(clock: clock)
  network.respond(to: url, with: .ok("42", cacheControl: "max-age=60"), .ok("43", cacheControl: "max-age=60"))
  let manager = ResourceManager(try .standard(folder: nil, downloader: network, clock: clock))
  let prices = PriceList(manager: manager)

  #expect(try await prices.price(at: url) == "42")
  clock.advance(by: .seconds(59))
  #expect(try await prices.price(at: url) == "42")
  clock.advance(by: .seconds(1))
  #expect(try await prices.price(at: url) == "43")
}
