import Etagere
import KingfisherNames
import Testing

/// An app's processor for the other side.
private struct Rounding: KingfisherNames.ImageProcessor {
  let identifier = "rounding"
}

@Suite("Beside a module that exports the same names")
struct BothSidesTests {
  @Test("both sides' callback queues are used, each by its module's name")
  func callbackQueues() {
    let called = Lock(false)
    Etagere.CallbackQueue.immediate.execute { called.withLock { $0 = true } }
    #expect(called.withLock { $0 })
    #expect(KingfisherNames.CallbackQueue.untouched.name == "KingfisherNames.CallbackQueue")
  }

  @Test("what only one side exports needs no module's name")
  func ownNames() {
    #expect(CacheKey(resource: "a") == Etagere.CacheKey(resource: "a"))
    #expect(DecodedImage.self == Etagere.DecodedImage.self)
  }

  @Test("both sides' pictures are used")
  func pictures() {
    #expect(Rounding().identifier == "rounding")
    #expect("\(Etagere.ImageProcessor.gray + .circle)" == "gray|circle")
    #expect(Etagere.ImageFormat.png.name == "PNG")
    #expect(KingfisherNames.ImageFormat.png.name == "KingfisherNames.ImageFormat")
  }
}
