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

  @Test("both boxes of hooks can be used")
  func delegates() {
    final class Owner: Sendable {}
    let owner = Owner()
    var ours = Etagere.Delegate<Int, Int>()
    ours.delegate(on: owner) { (_, number) in number + 1 }
    let theirs = KingfisherNames.Delegate<Int, Int>()
    theirs.delegate { $0 + 2 }
    #expect(ours(1) == 2 && theirs.call(1) == 3)
    withExtendedLifetime(owner) {}
  }

  @Test("both networking layers can be used")
  func networking() {
    #expect(Etagere.SessionDelegate().transfers.isEmpty)
    #expect(KingfisherNames.SessionDelegate().name == "KingfisherNames.SessionDelegate")

    let handle = Etagere.DownloadTask()
    handle.cancel()
    let transfer: Etagere.SessionDataTask? = handle.sessionTask
    #expect(handle.isCancelled && transfer == nil)
    #expect(!KingfisherNames.DownloadTask().isInitialized)
    #expect(KingfisherNames.SessionDataTask().name == "KingfisherNames.SessionDataTask")
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
