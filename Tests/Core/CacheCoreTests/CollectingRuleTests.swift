import HTTPTypes
import Testing

@testable import CacheCore

@Suite("The responses that a downloader collects")
struct CollectingRuleTests {
  @Test(
    "a length from 0 to the limit is collected, and no other, whatever the server states",
    arguments: [
      (0, true), (1, true), (64, true), (65, false), (-1, false), (.min, false), (.max, false),
    ] as [(Int64, Bool)])
  func lengths(_ length: Int64, _ isCollected: Bool) {
    #expect(HTTPResponse(status: .ok).isCollected(upTo: 64, length: length) == isCollected)
    #expect(!HTTPResponse(status: .ok).isCollected(upTo: 0, length: length))
  }

  @Test("an unknown length, a part and an error are not collected")
  func others() {
    #expect(!HTTPResponse(status: .ok).isCollected(upTo: 64, length: nil))
    #expect(!HTTPResponse(status: .partialContent).isCollected(upTo: 64, length: 1))
    #expect(!HTTPResponse(status: .notFound).isCollected(upTo: 64, length: 1))
  }
}
