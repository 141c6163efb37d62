#if Tool
import Etagere
import Foundation
import LoopbackOrigin

/// Thumbnails made, cached, confirmed, and dropped when their originals change: pass by pass, each counted at both ends.
struct ImageDemo {
  /// Where the cache is.
  let folder: URL
  /// Where the contact sheet goes.
  let sheet: URL
  let say: (String) -> Void

  /// What is made of each picture.
  private struct Look {
    var sizing: ImageSizing
    var rest: ImageProcessor

    /// Stored without loss, so that what comes back can be compared pixel by pixel.
    var transform: ResourceTransform<DecodedImage> { .image(.resize(sizing) + rest, storedAs: .png) }

    /// The same without loader and cache.
    func made(of bytes: Data) throws(CacheError) -> DecodedImage {
      try rest.process(ImageDecoder(size: sizing).decode(bytes))
    }
  }

  private let thumbnail = Look(sizing: .fit(160, 160), rest: .none)
  private let avatar = Look(sizing: .fill(96, 96), rest: .crop(96, 96) + .circle)
  private let clock = DemoClock()

  private static let made = RGBA(230, 140, 40)
  private static let confirmed = RGBA(70, 160, 90)

  init(folder: URL, sheet: URL, say: @escaping (String) -> Void) {
    self.folder = folder
    self.sheet = sheet
    self.say = say
  }

  func run() async throws -> ImageDemoReport {
    var content = try ImageDemoContent()
    let clock = clock
    let origin = try await OriginServer.start(now: { Date(timeIntervalSince1970: Double(clock.now.nanoseconds) / 1e9) })
    var report = ImageDemoReport(sheet: sheet.path(percentEncoded: false))
    do {
      try await passes(origin, &content, &report)
    } catch {
      await origin.stop()
      throw error
    }
    await origin.stop()
    return report
  }

  private func manager() throws -> ResourceManager {
    var configuration = ResourceManager.Configuration()
    configuration.downloader = Engine.make()
    configuration.clock = clock
    configuration.memory = MemoryCache(clock: clock)
    configuration.store = try DiskCache(folder: folder, configuration: .init(clock: clock))
    configuration.validator = ETagValidator()
    configuration.executor = ProcessingExecutor()
    configuration.storagePolicy = .all
    // What is to be stored is shown to be, on a slow disk too.
    configuration.storeWriteTimeout = nil
    return ResourceManager(configuration)
  }

  private func passes(_ origin: OriginServer, _ content: inout ImageDemoContent, _ report: inout ImageDemoReport) async throws {
    content.publish(on: origin)
    let count = content.items.count
    let bytes = content.items.reduce(0) { $0 + $1.body.count }
    let beyondLifetime = ImageDemoContent.lifetime + .seconds(1)
    say("\(count) pictures of \(ImageDemoContent.size) pixels, as JPEG, PNG and WebP: \(Text.bytes(Int64(bytes)))")
    say(ImageDemoPass.header)
    var contact = ContactSheet()

    func pass(
      _ name: String, _ look: Look, _ manager: ResourceManager, _ expected: ImageDemoExpectation
    ) async throws -> [DecodedImage] {
      let (pass, shown) = await ImageDemoPass.run(name, look.transform, of: content.items, with: manager, from: origin)
      report.wrong += expected.differences(from: pass, shown)
      report.passes.append(pass)
      say(pass.line)
      return try compare(name, look, shown, content, &report)
    }

    let first = try manager()
    let before = try await pass(
      "cold: loaded, made, stored", thumbnail, first, .init(requests: count, bodyBytes: bytes, made: count))
    _ = try await pass("again", thumbnail, first, .init(kept: count))
    _ = try await pass("another transform, of the stored originals", avatar, first, .init(made: count))
    await first.close()
    let second = try manager()
    _ = try await pass("after a restart", thumbnail, second, .init(stored: count))
    clock.advance(by: beyondLifetime)
    _ = try await pass(
      "stale, unchanged (304)", thumbnail, second,
      .init(requests: count, notModified: count, kept: count, validation: { _ in .notModified }))

    clock.advance(by: beyondLifetime)
    let changed = try content.change()
    content.publish(on: origin)
    let sent = changed.reduce(0) { $0 + content.items[$1].body.count }
    let after = try await pass(
      "stale, \(changed.count) changed (200)", thumbnail, second,
      .init(
        requests: count, notModified: count - changed.count, bodyBytes: sent, made: changed.count,
        kept: count - changed.count, validation: { changed.contains($0) ? .modified : .notModified }))
    await second.close()
    let third = try manager()
    let avatars = try await pass(
      "the other transform, after a restart", avatar, third, .init(made: changed.count, stored: count - changed.count))
    await third.close()

    contact.add(before.map { .init(image: $0, frame: Self.made) })
    contact.add(frames(after, changed))
    contact.add(frames(avatars, changed))
    try write(contact, &report)
  }

  /// A frame tells what was made anew.
  private func frames(_ images: [DecodedImage], _ changed: Set<Int>) -> [ContactSheet.Cell] {
    images.enumerated().map { .init(image: $1, frame: changed.contains($0) ? Self.made : Self.confirmed) }
  }

  /// Every thumbnail must be, pixel by pixel, what comes of the bytes that the origin serves now.
  private func compare(
    _ name: String, _ look: Look, _ shown: [ImageDemoPass.Shown], _ content: ImageDemoContent, _ report: inout ImageDemoReport
  ) throws -> [DecodedImage] {
    var images: [DecodedImage] = []
    for one in shown.sorted(by: { $0.index < $1.index }) {
      guard let resource = try? one.outcome.get() else { continue }
      let expected = try look.made(of: content.items[one.index].body)
      if resource.value.pixels.bytes != expected.pixels.bytes {
        report.wrong.append("\(name): picture \(one.index + 1) is not what comes of the origin's bytes")
      }
      images.append(resource.value)
    }
    return images
  }

  private func write(_ contact: ContactSheet, _ report: inout ImageDemoReport) throws {
    let file = try contact.png()
    do {
      try file.write(to: sheet, options: .atomic)
      let header = try ImageHeader(of: try Data(contentsOf: sheet))
      if header.format != .png || header.size != contact.size {
        report.wrong.append("the contact sheet is \(header.format) of \(header.size), not PNG of \(contact.size)")
      }
    } catch {
      Console.complain("\(report.sheet): the contact sheet can't be written: \(FileReason(error))")
      throw ToolFailure(status: .cannotWriteOutput)
    }
    say("\nThe contact sheet, \(contact.size) pixels: \(report.sheet)")
    say("  orange frames: made of the original; green ones: confirmed by a 304, or taken from the store")
  }
}

/// What the demo of pictures found.
struct ImageDemoReport: Encodable {
  var passes: [ImageDemoPass] = []
  /// Where the contact sheet is.
  var sheet: String
  var wrong: [String] = []

  init(sheet: String) { self.sheet = sheet }
}
#endif
