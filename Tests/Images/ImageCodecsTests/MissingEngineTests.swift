#if !canImport(ImageIO) && !VIPS
import CacheCore
import ImageCodecs
import ImageFiles
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Missing engine")
struct MissingEngineTests {
  @Test("the error says how to install an engine")
  func reason() {
    let gif = GIFFile(frames: [(1, 10)]).data
    for work in [
      { _ = try ImageDecoder().decode(gif) }, { _ = try ImageHeader(of: gif) },
      { _ = try ImageEncoder(.png).encode(TestImages.quarters()) },
    ] {
      let error = #expect(throws: CacheError.self) { try work() }
      #expect(error?.code == .unsupported)
      #expect(error?.reason.contains("trait VIPS") == true && error?.reason.contains("libvips-dev") == true)
    }
  }
}
#endif
