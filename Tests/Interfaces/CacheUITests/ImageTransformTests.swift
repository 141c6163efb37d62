#if canImport(ImageIO) || VIPS
import CacheCore
import CacheTesting
import CacheUI
import Foundation
import HTTPTypes
import Testing

@MainActor
@Suite("Image models with transforms and requests")
struct ImageTransformTests {
  private let fixture: ImageFixture
  private var model: ImageModel { fixture.model }

  init() throws { fixture = try ImageFixture() }

  /// A decoder of a format of its own: a width, a height, and a color of three bytes.
  private struct ColorDecoder: ResourceDecoder {
    var size: PixelSize?

    var id: ComponentID { ComponentID(Self.self, parameters: size.map { "\($0)" } ?? "") }

    func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> DecodedImage {
      guard data.count == 5 else { throw CacheError(.decodingFailed, reason: "a color has 5 bytes, not \(data.count)") }
      let pixels = PixelBuffer(size: size ?? PixelSize(Int(data[0]), Int(data[1])), channels: .rgb) { bytes in
        for index in bytes.indices { bytes[index] = data[2 + index % 3] }
      }
      guard let pixels else { throw CacheError(.imageLimitExceeded, reason: "not enough memory") }
      return DecodedImage(pixels, scale: 2)
    }

    func cost(of value: DecodedImage) -> Int { value.cost }
  }

  private func color(_ red: UInt8, _ green: UInt8, _ blue: UInt8) -> ScriptedResponse {
    .image(Data([6, 4, red, green, blue]))
  }

  // MARK: Transforms

  @Test("a decoder of one's own makes the image, and its result is processed")
  func ownDecoder() async throws {
    fixture.network.respond(to: fixture.url, with: color(0, 255, 0))
    model.load(fixture.url, as: .displayImage(.resize(.fit(3, 3)), decoder: ColorDecoder()))
    try await fixture.ended()
    #expect(fixture.states.last == "loaded green")
    #expect(model.image?.size == PixelSize(3, 2) && model.image?.scale == 2)
    // The same decoder with another setting is another transform.
    model.load(fixture.url, as: .displayImage(decoder: ColorDecoder(size: PixelSize(9, 9))))
    try await fixture.ended()
    #expect(model.image?.size == PixelSize(9, 9) && fixture.network.requests.count == 1)
  }

  @Test("the settings of the decoder are used: the first frame, limits, and the size of the first step")
  func decoderSettings() async throws {
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.animated(loops: 0)))
    model.load(fixture.url, as: .displayImage(decoder: ImageDecoder { $0.firstFrameOnly = true }))
    try await fixture.ended()
    #expect(model.image?.frameCount == 1 && fixture.states.last == "loaded red")
    model.load(fixture.url)
    try await fixture.ended()
    #expect(model.image?.frameCount == 3)

    let other = try fixture.url("large")
    fixture.network.respond(to: other, with: .image(ImageFile.png(RGBA(255, 0, 0), width: 64, height: 64)))
    model.load(other, as: .displayImage(limits: ImageLimits { $0.pixels = 63 * 63 }))
    try await fixture.ended()
    #expect(fixture.states.last == "failed(imageLimitExceeded) -")
    let decoder = ImageDecoder { $0.scale = 3 }
    model.load(other, as: .displayImage(.resize(.fit(16, 16)), decoder: decoder))
    try await fixture.ended()
    #expect(model.image?.size == PixelSize(16, 16) && model.image?.scale == 3)
    let shorthand = ResourceTransform.displayImage(.resize(.fit(16, 16)), scale: 3)
    #expect(shorthand.id == ResourceTransform.displayImage(.resize(.fit(16, 16)), decoder: decoder).id)
  }

  @Test(
    "with an encoder, the image is restored from the store by another process without the original",
    arguments: [(true, ImageEncoder.jpeg, true), (false, .png, true), (false, .jpeg, false)])
  func stored(isOpaque: Bool, encoder: ImageEncoder, isStored: Bool) async throws {
    let store = VolatileStore(clock: fixture.clock)
    let options = RequestOptions { $0.storagePolicy = .variants }
    let translucent = ImageFile.png(RGBA(0, 255, 0, 128), width: 64, height: 64)
    let file = isOpaque ? try ImageEncoder(.jpeg).encode(try ImageDecoder().decode(translucent)) : translucent
    let transform = ResourceTransform.displayImage(.resize(.fit(16, 16)), scale: 2, storedAs: encoder)
    var images: [DisplayImage] = []
    for _ in 0..<2 {
      let process = try ImageFixture { $0.store = store }
      process.network.respond(to: fixture.url, with: .image(file))
      process.model.load(fixture.url, as: transform, options: options)
      try await process.ended()
      let resource = try #require(process.model.phase.resource)
      #expect(process.network.requests.count == (images.isEmpty ? 1 : 0))
      if !images.isEmpty { #expect(resource.valueOrigin == (isStored ? .disk : .transformed)) }
      images.append(resource.value)
      await process.manager.close()
    }
    #expect(images[0].size == images[1].size && images[1].scale == 2)
    #expect(images.allSatisfy { $0.isOpaque == isOpaque })
    if encoder == .png {
      #expect(images[0].withUnsafeBytes { Array($0) } == images[1].withUnsafeBytes { Array($0) })
    }
  }

  @Test("a template is not stored, so that it is one in each process")
  func storedTemplate() async throws {
    let store = VolatileStore(clock: fixture.clock)
    let transform = ResourceTransform.displayImage(storedAs: .png).map("template") { $0.asTemplate() }
    for _ in 0..<2 {
      let process = try ImageFixture { $0.store = store }
      process.network.respond(to: fixture.url, with: .image(ImageFile.red))
      process.model.load(fixture.url, as: transform, options: RequestOptions { $0.storagePolicy = .variants })
      try await process.ended()
      #expect(process.model.image?.isTemplate == true)
      await process.manager.close()
    }
  }

  @Test(
    "the image of a decoder of one's own is restored with the scale of the transform, and not stored if that is not known",
    arguments: [(nil, 2, false), (2, 2, true), (3, 3, true)] as [(Double?, Double, Bool)])
  func storedScale(scale: Double?, expected: Double, isStored: Bool) async throws {
    let store = VolatileStore(clock: fixture.clock)
    let transform = ResourceTransform.displayImage(decoder: ColorDecoder(), scale: scale, storedAs: .png)
    for isFirst in [true, false] {
      let process = try ImageFixture { $0.store = store }
      process.network.respond(to: fixture.url, with: color(255, 0, 0))
      process.model.load(fixture.url, as: transform, options: RequestOptions { $0.storagePolicy = .variants })
      try await process.ended()
      #expect(process.states.last == "loaded red" && process.model.image?.scale == expected)
      #expect(process.model.phase.resource?.valueOrigin == (!isFirst && isStored ? .disk : .transformed))
      await process.manager.close()
    }
    let ids = [nil, 2, 3].map { ResourceTransform.displayImage(decoder: ColorDecoder(), scale: $0).id }
    #expect(Set(ids).count == 3)
    let standard = ResourceTransform.displayImage(decoder: ImageDecoder(), scale: 2)
    #expect(standard.id == ResourceTransform.displayImage(scale: 2).id)
  }

  @Test("a partial image is not stored, so that it is made from the original in each process")
  func storedPartial() async throws {
    let store = VolatileStore(clock: fixture.clock)
    let file = try progressiveFile()
    let decoder = ImageDecoder { $0.allowsPartial = true }
    let transform = ResourceTransform.displayImage(.resize(.fit(80, 80)), decoder: decoder, storedAs: .png)
    for _ in 0..<2 {
      let process = try ImageFixture { $0.store = store }
      process.network.respond(to: fixture.url, with: .image(file.prefix(file.count * 3 / 4)))
      process.model.load(fixture.url, as: transform, options: RequestOptions { $0.storagePolicy = .variants })
      try await process.ended()
      #expect(process.model.image?.isPartial == true && process.model.phase.resource?.valueOrigin == .transformed)
      await process.manager.close()
    }
  }

  @Test("a transform for the size of a view that always has one is never called without a size")
  func laidOut() {
    let transform = ViewTransform.laidOut { size, scale in .displayImage(.covering(size), scale: scale) }
    let size = PixelSize(9, 8)
    #expect(transform.resolved(size, scale: 2).id == ResourceTransform.displayImage(.covering(size), scale: 2).id)
    #expect(transform.id(scale: 2) == ViewTransform.covering().id(scale: 2))
    #expect(transform.id(scale: 2) != ViewTransform.covering(.gray).id(scale: 2))
  }

  @Test("a prefetched image of the same transform is in memory")
  func prefetched() async throws {
    let transform = ResourceTransform.displayImage(decoder: ColorDecoder())
    let rows = try (0..<4).map { ResourceRequest(try fixture.url("\($0)"), headerFields: [.accept: "image/color"]) }
    for row in rows { fixture.network.respond(to: row.url, with: color(255, 0, 0)) }
    let prefetcher = ImagePrefetcher(as: transform, distance: 2, manager: fixture.manager)
    prefetcher.rowAppeared(0, of: rows.count) { rows[$0] }
    prefetcher.rowAppeared(0, of: rows.count) { rows[$0] }
    try await Polling.until { rows[1...2].allSatisfy { fixture.manager.cachedInMemory($0, as: transform) != nil } }
    #expect(fixture.network.requests.count == 2)
    #expect(fixture.network.requests.allSatisfy { $0.headerFields[.accept] == "image/color" })
    model.load(rows[1], as: transform)
    #expect(fixture.states == ["loaded red"])
  }

  // MARK: Transforms that fail, are slow or change

  @Test("a transform that throws is a failure, and the image that another transform has made stays")
  func throwing() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    model.load(fixture.url)
    let broken = ResourceTransform.displayImage().map("broken") { _ throws(CacheError) in
      throw CacheError(.decodingFailed, reason: "broken")
    }
    model.load(fixture.url, as: broken)
    try await fixture.ended()
    #expect(fixture.states == ["loaded red", "loading red", "failed(decodingFailed) red"])
    // Without an image of the same resource, none is shown.
    let other = try fixture.url("other")
    fixture.network.respond(to: other, with: .image(ImageFile.green))
    model.load(other, as: broken)
    try await fixture.ended()
    #expect(fixture.states.last == "failed(decodingFailed) -")
    model.load(other)
    try await fixture.ended()
    #expect(fixture.states.last == "loaded green")
  }

  @Test("a transform that throws for a newer response fails with the stale image")
  func throwingAfterStale() async throws {
    fixture.network.respond(to: fixture.url, with: color(255, 0, 0), .image(Data("not a color".utf8), etag: "\"2\""))
    let transform = ResourceTransform.displayImage(decoder: ColorDecoder())
    _ = try await fixture.manager.load(fixture.url, as: transform)
    fixture.clock.advance(by: .seconds(61))
    model.load(fixture.url, as: transform)
    try await fixture.ended()
    #expect(fixture.states == ["stale red", "failed(decodingFailed) red"])
  }

  @Test("an image in another size than the view's is shown, and no further load begins")
  func otherSize() async throws {
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.png(RGBA(255, 0, 0), width: 64, height: 64)))
    let transform = ViewTransform.sized { _, _ in .displayImage(.resize(.fit(2, 2))) }
    model.load(ResourceRequest(fixture.url), as: transform, size: PixelSize(40, 40), scale: 1)
    try await fixture.ended()
    #expect(model.image?.size == PixelSize(2, 2) && model.covers(PixelSize(40, 40)) && model.covers(PixelSize(30, 30)))
    // The transform for another size of the view is the same.
    let count = fixture.states.count
    model.load(ResourceRequest(fixture.url), as: transform, size: PixelSize(80, 80), scale: 1)
    #expect(fixture.states.count == count && !model.phase.isLoading)
  }

  /// A transform that waits for a gate.
  private func slow(_ gate: Gate, _ base: ResourceTransform<DisplayImage> = .displayImage()) -> ResourceTransform<DisplayImage> {
    ResourceTransform(id: "slow", cost: { $0.cost }) { body, metadata throws(CacheError) in
      await gate.pass()
      return try await base.make(body, metadata)
    }
  }

  @Test("during a slow transform, the phase is loading, and a cancellation takes effect at once")
  func slowTransform() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red))
    model.load(fixture.url, as: slow(gate))
    await gate.arrived()
    #expect(fixture.states == ["loading -"])
    model.cancel()
    #expect(fixture.states == ["loading -", "failed(cancelled) -"])
    gate.open()
    await fixture.manager.close()
    #expect(fixture.states.count == 2)
  }

  @Test("a transform that changes while it loads replaces the load, and its result is never shown")
  func changed() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.png(RGBA(255, 0, 0), width: 64, height: 64)))
    model.load(fixture.url, as: slow(gate))
    await gate.arrived()
    model.load(fixture.url, as: .displayImage(.resize(.fit(8, 8))))
    try await fixture.ended()
    #expect(model.image?.size == PixelSize(8, 8))
    gate.open()
    await fixture.manager.close()
    #expect(model.image?.size == PixelSize(8, 8) && fixture.states.filter { $0 == "loaded red" }.count == 1)
    #expect(fixture.network.requests.count == 1)
  }

  // MARK: Requests

  @Test("a request's header fields and limits are used, and loads that differ in a field are not the same")
  func requests() async throws {
    let responses = [ImageFile.red, ImageFile.green].map {
      ScriptedResponse.ok($0, cacheControl: "max-age=60", fields: [.vary: "Accept-Language"])
    }
    fixture.network.respond(to: fixture.url, with: responses[0], responses[1])
    func request(_ language: String) -> ResourceRequest {
      ResourceRequest(fixture.url, headerFields: [.acceptLanguage: language])
    }
    model.load(request("en"), as: .displayImage())
    try await fixture.ended()
    model.load(request("en"), as: .displayImage())
    #expect(fixture.states.last == "loaded red" && fixture.network.requests.count == 1)
    model.load(request("de"), as: .displayImage())
    #expect(fixture.states.last == "loading -")
    try await fixture.ended()
    #expect(fixture.states.last == "loaded green" && fixture.network.requests.count == 2)
    #expect(fixture.network.requests.map { $0.headerFields[.acceptLanguage] } == ["en", "de"])

    let other = try fixture.url("other")
    fixture.network.respond(to: other, with: .image(ImageFile.red))
    model.load(ResourceRequest(other, options: RequestOptions { $0.maximumBodySize = 10 }), as: .displayImage())
    try await fixture.ended()
    #expect(fixture.states.last == "failed(bodyTooLarge) -")
  }

  @Test("the key of a request is the identity of its image")
  func keys() async throws {
    let options = RequestOptions { $0.key = "image" }
    let signed = try (1...2).map { try fixture.url("signed\($0)") }
    fixture.network.respond(to: signed[0], with: .image(ImageFile.red))
    for url in signed {
      model.load(ResourceRequest(url, options: options), as: .displayImage())
      try await fixture.ended()
    }
    #expect(fixture.states.filter { $0 == "loaded red" }.count == 1 && fixture.network.requests.count == 1)
  }

  @Test(
    "a request with a body, or with a method other than GET, is refused and not sent",
    arguments: [(HTTPRequest.Method.post, true), (.get, true), (.head, false)])
  func refused(method: HTTPRequest.Method, hasBody: Bool) async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    let body = hasBody ? RequestBody(Data("color".utf8)) : nil
    let request = ResourceRequest(fixture.url, method: method, body: body)
    model.settings.placeholderDelay = .milliseconds(50)
    model.prepare(request, as: .fixed(.displayImage()), size: nil, scale: 1)
    #expect(model.image == nil && !model.hidesPlaceholder)
    model.load(fixture.url)
    model.load(request, as: .displayImage())
    model.retry()
    #expect(fixture.states == ["loaded red", "failed(misuse) -", "failed(misuse) -"])
    #expect(model.phase.error?.url == fixture.url.absoluteString)
    model.load(fixture.url)
    #expect(fixture.states.last == "loaded red")
    // The prefetcher skips it, too.
    let (next, prefetcher) = (try fixture.url("next"), ImagePrefetcher(concurrency: 1, manager: fixture.manager))
    fixture.network.respond(to: next, with: .image(ImageFile.green))
    prefetcher.prefetch([request, ResourceRequest(next)])
    try await Polling.until { fixture.manager.cachedInMemory(next, as: .displayImage()) != nil }
    #expect(fixture.network.requests.count == 2)
  }

  @Test("without a request or a URL, no image is shown")
  func noRequest() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    model.load(ResourceRequest(fixture.url), as: .displayImage())
    model.load(nil, as: .displayImage())
    #expect(fixture.states == ["loaded red", "empty -"])
  }

  // MARK: Previews

  /// A progressive JPEG.
  private func progressiveFile() throws -> Data {
    let pixels = try #require(
      PixelBuffer(size: PixelSize(320, 240), channels: .rgb) { bytes in
        for index in bytes.indices {
          bytes[index] = UInt8(truncatingIfNeeded: (index / 3 % 320) / 2 + index / 7_000 + index % 13)
        }
      })
    var encoder = ImageEncoder(.jpeg, quality: 90)
    encoder.isProgressive = true
    return try encoder.encode(DecodedImage(pixels))
  }

  /// Serves a progressive JPEG of which the last bytes wait for the gate.
  private func serve(_ url: URL, until gate: Gate, _ cacheControl: String = "max-age=60") throws {
    let file = try progressiveFile()
    fixture.network.respond(to: url, with: .ok(file, cacheControl: cacheControl).chunked(by: 100).bodyHeld(by: gate))
    gate.letThrough(file.count / 100 - 2)
  }

  @Test("a preview of an arriving image is made by the transform, and is replaced by the image")
  func previews() async throws {
    let gate = Gate()
    try serve(fixture.url, until: gate)
    model.settings.previews = .standard
    model.load(fixture.url, as: .displayImage(.resize(.fit(80, 80)), scale: 2).map("template") { $0.asTemplate() })
    try await Polling.until { @MainActor in model.isPreview }
    #expect(model.image?.size == PixelSize(80, 60) && model.image?.scale == 2 && model.image?.isTemplate == true)
    guard case .loading = model.phase else { return #expect(Bool(false), "a preview does not end the phase loading") }
    gate.open()
    try await fixture.ended()
    #expect(!model.isPreview && model.phase.resource?.value.isSame(as: model.image) == true)
  }

  @Test("without the setting, and over an image of the same resource, there are no previews", arguments: [false, true])
  func noPreviews(hasImage: Bool) async throws {
    let (gate, cutFiles) = (Gate(), Gate())
    try serve(fixture.url, until: gate)
    let updates = Updates { _ = model.isPreview }
    if hasImage {
      let (small, file) = (RequestOptions { $0.key = "image" }, try progressiveFile())
      try await fixture.manager.store(file, for: fixture.url, options: small)
      model.load(fixture.url, .resize(.fit(8, 8)), options: small)
      try await fixture.ended()
      model.settings.previews = .standard
      let transform = ResourceTransform<DisplayImage>(id: "observed", cost: { $0.cost }) { body, metadata throws(CacheError) in
        if let data = body.data, data.count < file.count { await cutFiles.pass() }
        return try await ResourceTransform.displayImage().make(body, metadata)
      }
      model.load(fixture.url, as: transform, options: RequestOptions { ($0.key, $0.policy) = ("image", .reload) })
      // The second preview begins when the first one has been sent to the model, which receives it before the image.
      await gate.arrived(file.count / 100 - 1)
      await cutFiles.arrived()
      cutFiles.letThrough()
      await cutFiles.arrived(2)
    } else {
      model.load(fixture.url)
      try await Polling.until { @MainActor in model.progress != nil }
    }
    cutFiles.open()
    gate.open()
    try await fixture.ended()
    #expect(updates.count == 0 && !model.isPreview)
  }

  @Test("a preview is removed by the load of another URL, whatever the settings", arguments: [false, true])
  func previewOfAnother(hasSize: Bool) async throws {
    let gate = Gate()
    try serve(fixture.url, until: gate)
    let other = try fixture.url("other")
    fixture.network.respond(to: other, with: .image(ImageFile.green))
    model.settings = ImageModel.Settings { ($0.previews, $0.keepsPreviousImage) = (.standard, true) }
    model.load(fixture.url)
    try await Polling.until { @MainActor in model.isPreview }
    model.load(other, covering: hasSize ? PixelSize(4, 4) : nil, scale: 1, options: RequestOptions())
    #expect(model.image == nil && !model.isPreview)
    gate.open()
    try await fixture.ended()
  }

  @Test("a preview is removed by an error or a cancellation", arguments: [false, true])
  func removedPreview(isCancelled: Bool) async throws {
    let gate = Gate()
    let file = try progressiveFile()
    let response = ScriptedResponse.ok(file, cacheControl: "max-age=60").cut(after: file.count - 50)
    fixture.network.respond(to: fixture.url, with: response.chunked(by: 100).bodyHeld(by: gate))
    gate.letThrough(file.count / 100 - 2)
    model.settings.previews = .standard
    model.load(fixture.url, .resize(.fit(80, 80)))
    try await Polling.until { @MainActor in model.isPreview }
    if isCancelled { model.cancel() }
    gate.open()
    try await fixture.ended()
    #expect(model.image == nil && !model.isPreview && model.phase.error != nil)
  }
}
#endif
