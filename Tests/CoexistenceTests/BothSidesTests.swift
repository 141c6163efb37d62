import Etagere
import KingfisherNames
import Testing

/// An app's processor for Kingfisher.
private struct Rounding: KingfisherNames.ImageProcessor {
  let identifier = "rounding"
}

@Suite("Coexistence with a module that exports the same names")
struct BothSidesTests {
  @Test("both callback queues can be used, each with its module's name")
  func callbackQueues() {
    let called = Lock(false)
    Etagere.CallbackQueue.immediate.execute { called.withLock { $0 = true } }
    #expect(called.withLock { $0 })
    #expect(KingfisherNames.CallbackQueue.untouched.name == "KingfisherNames.CallbackQueue")
  }

  @Test("a name that only one module exports needs no module name")
  func ownNames() {
    #expect(CacheKey(resource: "a") == Etagere.CacheKey(resource: "a"))
    #expect(DecodedImage.self == Etagere.DecodedImage.self)
  }

  @Test("both image processors and formats can be used")
  func images() {
    #expect(Rounding().identifier == "rounding")
    #expect("\(Etagere.ImageProcessor.gray + .circle)" == "gray|circle")
    #expect(Etagere.ImageFormat.png.name == "PNG")
    #expect(KingfisherNames.ImageFormat.png.name == "KingfisherNames.ImageFormat")
  }
}
