#if canImport(ImageIO) || VIPS
import CacheTesting
import CacheUI
import Foundation
import HTTPTypes
import Testing

/// A temporary folder, which is removed when the test releases it.
private final class TemporaryFolder: Sendable {
  let url: URL

  init() throws {
    let path = FileManager.default.resolvedTemporaryPath + "/etagere-ui-\(Revision.random())"
    url = URL(filePath: path, directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }
}

@MainActor
@Suite("Settings of image models")
struct ImageSettingsTests {
  private let fixture: ImageFixture
  private var model: ImageModel { fixture.model }

  init() throws { fixture = try ImageFixture() }

  // MARK: The previous image

  @Test("the previous image stays until that of another URL is available")
  func previousImage() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    let other = try fixture.url("other")
    fixture.network.respond(to: other, with: .image(ImageFile.green))
    model.settings.keepsPreviousImage = true
    model.load(fixture.url)
    model.load(other)
    try await fixture.ended()
    #expect(fixture.states == ["loaded red", "loading red", "loaded green"])
    model.load(nil)
    #expect(fixture.states.last == "empty -")
  }

  @Test(
    "the previous image stays after an error, unless the origin refused the request",
    arguments: [(404, "-"), (410, "-"), (429, "red"), (503, "red")])
  func previousImageAfterError(status: Int, shown: String) async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    let other = try fixture.url("other")
    fixture.network.respond(to: other, with: .response(.init(code: status)))
    model.settings.keepsPreviousImage = true
    model.load(fixture.url)
    model.load(other)
    try await fixture.ended()
    #expect(fixture.states == ["loaded red", "loading red", "failed(unacceptableStatus) \(shown)"])
  }

  @Test("the previous image stays after a transform that throws, and after a cancellation", arguments: [false, true])
  func previousImageAfterThrow(isCancelled: Bool) async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    let other = try fixture.url("other")
    fixture.network.respond(to: other, with: .ok("not an image"))
    model.settings.keepsPreviousImage = true
    model.load(fixture.url)
    model.load(other)
    if isCancelled { model.cancel() }
    try await fixture.ended()
    #expect(fixture.states.last == "failed(\(isCancelled ? "cancelled" : "decodingFailed")) red")
    // The failed load is no reason to remove it either.
    model.load(fixture.url)
    #expect(fixture.states.last == "loaded red")
  }

  @Test("an image that was kept over a failed load of another URL is not the image of that URL")
  func keptByFailure() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    let other = try fixture.url("other")
    fixture.network.respond(to: other, with: .failure(.offline), .failure(.offline))
    model.settings.keepsPreviousImage = true
    model.load(fixture.url)
    model.load(other)
    try await fixture.ended()
    #expect(fixture.states.last == "failed(offline) red")
    model.settings.keepsPreviousImage = false
    model.load(other)
    try await fixture.ended()
    #expect(fixture.states.suffix(2) == ["loading -", "failed(offline) -"])
  }

  @Test("the previous image stays while the view waits for a layout")
  func previousImageBeforeLayout() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    let other = try fixture.url("other")
    fixture.network.respond(to: other, with: .image(ImageFile.green))
    model.settings.keepsPreviousImage = true
    model.load(fixture.url)
    model.load(other, covering: nil, scale: 1, options: RequestOptions())
    #expect(fixture.states == ["loaded red", "empty red"])
    model.load(other, covering: PixelSize(2, 2), scale: 1, options: RequestOptions())
    try await fixture.ended()
    #expect(fixture.states == ["loaded red", "empty red", "loading red", "loaded green"])
    model.load(other, covering: nil, scale: 1, options: RequestOptions())
    model.load(nil)
    #expect(fixture.states.suffix(2) == ["empty green", "empty -"])
  }

  @Test("without the setting, the image of another URL is removed when the load begins")
  func noPreviousImage() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    model.load(fixture.url)
    let other = try fixture.url("other")
    fixture.network.respond(to: other, with: .image(ImageFile.green))
    model.load(other)
    #expect(fixture.states == ["loaded red", "loading -"])
    try await fixture.ended()
  }

  // MARK: The delay of the placeholder

  /// Caches an image on disk only.
  private func cacheOnDisk(_ fixture: ImageFixture, _ response: ScriptedResponse = .image(ImageFile.red)) async throws {
    try await fixture.cache(fixture.url, response)
    fixture.memory.removeAll()
    fixture.model.settings.placeholderDelay = .milliseconds(50)
  }

  @Test("an image in a real folder is shown without a placeholder, because the clock does not advance", arguments: [false, true])
  func onDisk(isPrepared: Bool) async throws {
    let folder = try TemporaryFolder()
    let clock = fixture.clock
    let disk = try ResourceManager.Configuration.standard(folder: folder.url, clock: clock).store
    let fixture = try ImageFixture { $0.store = disk }
    try await cacheOnDisk(fixture)
    #expect(try await fixture.manager.lookup(fixture.url) == .disk(isFresh: true))
    if isPrepared {
      fixture.model.prepare(fixture.url, scale: 1, options: RequestOptions())
      #expect(fixture.model.hidesPlaceholder && fixture.states.isEmpty)
    }
    fixture.model.load(fixture.url)
    try await fixture.ended()
    #expect(fixture.states == ["loading nothing", "loaded red"])
    #expect(fixture.network.requests.count == 1 && !fixture.model.hidesPlaceholder)
    await fixture.manager.close()
  }

  @Test("the placeholder of a miss is shown after the delay, and not before")
  func miss() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).held(by: gate))
    model.settings.placeholderDelay = .milliseconds(50)
    let updates = Updates { _ = model.hidesPlaceholder }
    model.load(fixture.url)
    await gate.arrived()
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .milliseconds(49))
    #expect(fixture.states == ["loading nothing"])
    fixture.clock.advance(by: .milliseconds(1))
    try await Polling.until { @MainActor in fixture.states.count == 2 }
    gate.open()
    try await fixture.ended()
    #expect(fixture.states == ["loading nothing", "loading -", "loaded red"])
    #expect(updates.count == 2)
  }

  @Test(
    "bytes do not end the delay, so an image that follows them at once appears without a flash",
    arguments: ["many chunks", "one piece", "file"])
  func progress(source: String) async throws {
    let gate = Gate()
    let file = ImageFile.png(RGBA(255, 0, 0), width: 64, height: 64)
    let folder = try TemporaryFolder()
    var (url, transitions) = (fixture.url, 0)
    switch source {
    case "many chunks": fixture.network.respond(to: url, with: .image(file).chunked(by: 50).bodyHeld(by: gate))
    case "one piece": fixture.network.respond(to: url, with: .image(file))
    default:
      url = folder.url.appending(path: "image.png")
      try file.write(to: url)
    }
    model.transition = { change in
      transitions += 1
      change()
    }
    model.settings.placeholderDelay = .milliseconds(50)
    model.load(url)
    if source == "many chunks" {
      gate.letThrough(1)
      try await Polling.until { @MainActor in model.progress != nil }
      #expect(model.hidesPlaceholder)
      gate.open()
    }
    try await fixture.ended()
    #expect(fixture.states == ["loading nothing", "loaded red"] && transitions == 0)
  }

  @Test("the delay does not elapse while the view has disappeared, and begins again with it", arguments: [false, true])
  func disappeared(keepsLoading: Bool) async throws {
    let gate = Gate()
    let response = ScriptedResponse.image(ImageFile.red).held(by: gate)
    fixture.network.respond(to: fixture.url, with: response, response)
    model.settings.placeholderDelay = .milliseconds(50)
    model.load(fixture.url)
    await gate.arrived()
    await fixture.clock.sleepers(1)
    model.disappear(keepsLoading: keepsLoading)
    try await Polling.until { fixture.clock.pendingSleeps == 0 }
    fixture.clock.advance(by: .milliseconds(50))
    model.load(fixture.url)
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .milliseconds(49))
    #expect(fixture.states == ["loading nothing"] && model.hidesPlaceholder)
    fixture.clock.advance(by: .milliseconds(1))
    try await Polling.until { @MainActor in !model.hidesPlaceholder }
    gate.open()
    try await fixture.ended()
    #expect(fixture.states == ["loading nothing", "loading -", "loaded red"])
  }

  @Test(
    "a view that waits for its layout shows nothing, or the placeholder if the load does not read the disk",
    arguments: [true, false])
  func delayBeforeLayout(readsDisk: Bool) {
    let options = RequestOptions { $0.policy = readsDisk ? nil : .reload }
    model.settings.placeholderDelay = .milliseconds(50)
    for _ in 0..<2 { model.load(fixture.url, covering: nil, scale: 1, options: options) }
    #expect(fixture.states == (readsDisk ? ["empty nothing"] : []) && model.hidesPlaceholder == readsDisk)
    model.load(nil)
  }

  @Test("the delay ends with an error, a cancellation and a load of no image", arguments: ["error", "cancellation", "none"])
  func ended(ending: String) async throws {
    fixture.network.respond(to: fixture.url, with: .failure(.offline))
    model.settings.placeholderDelay = .milliseconds(50)
    model.load(fixture.url)
    switch ending {
    case "cancellation": model.cancel()
    case "none": model.load(nil)
    default: break
    }
    try await fixture.ended()
    let last = ["error": "failed(offline) -", "cancellation": "failed(cancelled) -", "none": "empty -"][ending]
    #expect(fixture.states.first == "loading nothing" && fixture.states.last == last)
    #expect(fixture.states.count == 2 && !model.hidesPlaceholder)
  }

  @Test("a placeholder that is shown stays during the next load, and after an error")
  func shownPlaceholder() async throws {
    fixture.network.respond(to: fixture.url, with: .failure(.offline), .image(ImageFile.red))
    model.load(nil)
    model.settings.placeholderDelay = .milliseconds(50)
    model.load(fixture.url)
    try await fixture.ended()
    model.retry()
    try await fixture.ended()
    #expect(fixture.states == ["loading -", "failed(offline) -", "loading -", "loaded red"])
  }

  @Test("a reused row shows nothing during the delay, or the previous image with that setting", arguments: [false, true])
  func reused(keepsPreviousImage: Bool) async throws {
    try await cacheOnDisk(fixture)
    let other = try fixture.url("other")
    try await fixture.cache(other, .image(ImageFile.green))
    model.settings.keepsPreviousImage = keepsPreviousImage
    model.load(other)
    model.load(fixture.url)
    try await fixture.ended()
    #expect(fixture.states == ["loaded green", "loading \(keepsPreviousImage ? "green" : "nothing")", "loaded red"])
  }

  @Test("a stale image on disk ends the delay, and is shown while it is revalidated")
  func stale() async throws {
    try await cacheOnDisk(fixture, .image(ImageFile.red, etag: "\"1\""))
    fixture.network.respond(to: fixture.url, with: .notModified(cacheControl: "max-age=60"))
    fixture.clock.advance(by: .seconds(61))
    model.load(fixture.url)
    try await fixture.ended()
    #expect(fixture.states == ["loading nothing", "stale red", "loaded red"])
  }

  @Test("an image from disk appears without the transition, and one after the placeholder with it")
  func transitions() async throws {
    var transitions = 0
    model.transition = { change in
      transitions += 1
      change()
    }
    try await cacheOnDisk(fixture)
    model.load(fixture.url)
    try await fixture.ended()
    #expect(fixture.states.last == "loaded red" && transitions == 0)
    let other = try fixture.url("other")
    fixture.network.respond(to: other, with: .image(ImageFile.green))
    model.settings.placeholderDelay = .zero
    model.load(other)
    try await fixture.ended()
    #expect(fixture.states.last == "loaded green" && transitions == 1)
  }

  @Test(
    "a load that does not read the disk, and a delay of zero or less, show the placeholder at once",
    arguments: ["reload", "memory alone", "no store", "zero", "negative"])
  func noDelay(reason: String) async throws {
    try await cacheOnDisk(fixture)
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red))
    let options = RequestOptions {
      switch reason {
      case "reload": $0.policy = .reload
      case "memory alone": $0.reads = .memory
      case "no store": $0.store = .disabled
      default: break
      }
    }
    if reason == "zero" { model.settings.placeholderDelay = .zero }
    if reason == "negative" { model.settings.placeholderDelay = .milliseconds(-50) }
    model.prepare(fixture.url, scale: 1, options: options)
    model.load(fixture.url, options: options)
    #expect(fixture.states == ["loading -"] && !model.hidesPlaceholder)
    try await fixture.ended()
  }
}
#endif
