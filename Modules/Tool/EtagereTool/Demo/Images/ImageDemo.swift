#if Demo
import CommandIO
import Etagere
import Foundation
import LoopbackOrigin

/// The passes of the image demo: thumbnails are made, cached, revalidated, and made again when their originals change.
struct ImageDemo {
  let folder: URL
  let sheet: OutputFile
  let reporting: ReportingOptions

  /// A kind of thumbnail.
  private struct Look {
    var sizing: ImageSizing
    var rest: ImageProcessor

    /// The transform of a load. It stores PNG, which is lossless, so that every pixel can be compared.
    var transform: ResourceTransform<DecodedImage> { .image(.resize(sizing) + rest, storedAs: .png) }

    /// Makes the thumbnail without the loader and the cache.
    func made(of bytes: Data) throws(CacheError) -> DecodedImage {
      try rest.process(ImageDecoder(size: sizing).decode(bytes))
    }
  }

  private let thumbnail = Look(sizing: .fit(160, 160), rest: .none)
  private let avatar = Look(sizing: .fill(96, 96), rest: .crop(96, 96) + .circle)
  private let clock = DemoClock()

  private static let made = RGBA(230, 140, 40)
  private static let confirmed = RGBA(70, 160, 90)

  private let currentPass = DemoProgress("drawing 12 images")

  init(folder: URL, sheet: OutputFile, reporting: ReportingOptions) {
    self.folder = folder
    self.sheet = sheet
    self.reporting = reporting
  }

  /// The line of the progress bar after this time.
  @Sendable func progress(_ time: Duration) -> String {
    "\(ProgressBar.activity(Int(time / .milliseconds(100)))) \(currentPass.current)"
  }

  func run() async throws -> ImageDemoReport {
    var content = try ImageDemoContent()
    var report = ImageDemoReport(sheet: sheet.path)
    try await clock.withOrigin { origin in try await passes(origin, &content, &report) }
    return report
  }

  private func manager() throws -> ResourceManager {
    var configuration = try clock.configuration(Engine.make(), folder: folder, reporting)
    configuration.observer = reporting.tracing(nil)
    configuration.executor = ProcessingExecutor()
    configuration.storagePolicy = .all
    return ResourceManager(configuration)
  }

  private func passes(_ origin: OriginServer, _ content: inout ImageDemoContent, _ report: inout ImageDemoReport) async throws {
    content.publish(on: origin)
    let count = content.items.count
    let bytes = content.items.reduce(0) { $0 + $1.body.count }
    let beyondLifetime = ImageDemoContent.lifetime + .seconds(1)
    let formats = ImageDemoContent.formats.map(\.name).joined(separator: ", ")
    reporting.heading(
      "\(count) images of \(ImageDemoContent.size) pixels, as \(formats): \(Text.bytes(Int64(bytes)))")
    reporting.result(ImageDemoPass.header)
    var contact = ContactSheet()

    func pass(
      _ name: String, _ look: Look, _ manager: ResourceManager, _ expected: ImageDemoExpectation
    ) async throws -> [DecodedImage] {
      currentPass.begin(name)
      let (pass, shown) = await ImageDemoPass.run(name, look.transform, of: content.items, with: manager, from: origin)
      report.wrong += expected.differences(from: pass, shown)
      report.passes.append(pass)
      reporting.result(pass.line)
      return try compare(name, look, shown, content, &report)
    }

    let first = try manager()
    let before = try await pass(
      "cold", thumbnail, first, .init(requests: count, bodyBytes: bytes, transformed: count))
    _ = try await pass("again", thumbnail, first, .init(memory: count))
    _ = try await pass("another transform", avatar, first, .init(transformed: count))
    await reporting.close(first)
    let second = try manager()
    _ = try await pass("after a restart", thumbnail, second, .init(disk: count))
    clock.advance(by: beyondLifetime)
    _ = try await pass(
      "stale, unchanged (304)", thumbnail, second,
      .init(requests: count, notModified: count, memory: count, validation: { _ in .notModified }))

    clock.advance(by: beyondLifetime)
    let changed = try content.change()
    content.publish(on: origin)
    let sent = changed.reduce(0) { $0 + content.items[$1].body.count }
    let after = try await pass(
      "stale, \(changed.count) changed (200)", thumbnail, second,
      .init(
        requests: count, notModified: count - changed.count, bodyBytes: sent, transformed: changed.count,
        memory: count - changed.count, validation: { changed.contains($0) ? .modified : .notModified }))
    await reporting.close(second)
    let third = try manager()
    let avatars = try await pass(
      "the other, restarted", avatar, third, .init(transformed: changed.count, disk: count - changed.count))
    await reporting.close(third)

    contact.add(before.map { .init(image: $0, frame: Self.made) })
    contact.add(frames(after, changed))
    contact.add(frames(avatars, changed))
    try write(contact, &report)
  }

  /// Frames the thumbnails by whether they were made again.
  private func frames(_ images: [DecodedImage], _ changed: Set<Int>) -> [ContactSheet.Cell] {
    images.enumerated().map { .init(image: $1, frame: changed.contains($0) ? Self.made : Self.confirmed) }
  }

  /// Compares every pixel with the thumbnail of the bytes that the origin serves now.
  private func compare(
    _ name: String, _ look: Look, _ shown: [ImageDemoPass.Shown], _ content: ImageDemoContent, _ report: inout ImageDemoReport
  ) throws -> [DecodedImage] {
    var images: [DecodedImage] = []
    for one in shown.sorted(by: { $0.index < $1.index }) {
      guard let resource = try? one.outcome.get() else { continue }
      let expected = try look.made(of: content.items[one.index].body)
      if resource.value.pixels.bytes != expected.pixels.bytes {
        report.wrong.append("\(name): image \(one.index + 1) differs from a thumbnail of the bytes of the origin")
      }
      images.append(resource.value)
    }
    return images
  }

  private func write(_ contact: ContactSheet, _ report: inout ImageDemoReport) throws {
    let file = try contact.png()
    // The bytes are checked before they are written, because the path may name a pipe.
    let header = try ImageHeader(of: file)
    if header.format != .png || header.size != contact.size {
      report.wrong.append("the contact sheet is \(header.format) of \(header.size), expected PNG of \(contact.size)")
    }
    do throws(CacheError) {
      try sheet.write(file)
    } catch {
      Console.complain(error.reason)
      throw ToolFailure(status: .cannotCreate)
    }
    reporting.heading("")
    reporting.result("contact sheet of \(contact.size) pixels: \(report.sheet)")
    reporting.heading("  orange frame: made from the original; green frame: revalidated or read from disk")
  }
}

/// The results of the image demo.
struct ImageDemoReport: Encodable {
  var passes: [ImageDemoPass] = []
  /// The path of the contact sheet.
  var sheet: String
  var wrong: [String] = []

  init(sheet: String) { self.sheet = sheet }
}
#endif
