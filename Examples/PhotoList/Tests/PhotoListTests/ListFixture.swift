import CacheTesting
import CacheUI
import Foundation
import Testing

@testable import PhotoList

/// A cache with a scripted network and a clock that stands still.
@MainActor
final class ListFixture {
  let clock = ManualClock()
  let network: ScriptedDownloader
  let manager: ResourceManager
  let url: URL

  init() throws {
    network = ScriptedDownloader(clock: clock)
    var configuration = try ResourceManager.Configuration.standard(folder: nil, downloader: network, clock: clock)
    configuration.store = VolatileStore(clock: clock)
    manager = ResourceManager(configuration)
    url = try #require(URL(string: "https://example.com/image.png"))
  }

  /// Returns a new row that has appeared.
  func appearedRow() -> MeasuredRow {
    let row = MeasuredRow(manager: manager, clock: clock)
    row.appear(url)
    return row
  }

  /// Returns a 200 with an image that is fresh for a minute.
  static func image(_ seed: Int) throws -> ScriptedResponse {
    let file = try ImageEncoder(.png).encode(DecodedImage(DrawnImage(seed: seed).symbol(8)))
    return .ok(file, etag: "\"\(seed)\"", cacheControl: "max-age=60")
  }
}

/// Small images for tests.
enum SmallContent {
  static func make() throws -> ListContent { try ListContent(photographWidths: [60, 90, 120]) }
}
