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

/// One pass over all images: the requests to the origin, and the sources of the thumbnails.
struct ImageDemoPass: Encodable, Sendable {
  var name: String
  var requests = 0
  var notModified = 0
  var bodyBytes = 0
  /// The number of thumbnails that were made from the bytes of the original.
  var transformed = 0
  /// The number of thumbnails that were read from disk, without their original.
  var disk = 0
  /// The number of thumbnails that were in memory.
  var memory = 0
  var milliseconds = 0.0

  /// The result of loading the thumbnail of one image.
  struct Shown: Sendable {
    var index: Int
    var outcome: Result<Resource<DecodedImage>, CacheError>
  }

  /// Loads the thumbnail of every image.
  static func run(
    _ name: String, _ transform: ResourceTransform<DecodedImage>, of items: [ImageDemoContent.Item],
    with manager: ResourceManager,
    from origin: OriginServer
  ) async -> (pass: Self, shown: [Shown]) {
    origin.resetCounters()
    let clock = SystemClock()
    let start = clock.uptime
    let shown = await BoundedLoads(parallel: 6).run(Array(items.indices)) { index in
      do throws(CacheError) {
        return Shown(index: index, outcome: .success(try await manager.load(origin.url(items[index].path), as: transform)))
      } catch {
        return Shown(index: index, outcome: .failure(error))
      }
    }
    var pass = Self(name: name)
    pass.milliseconds = Text.milliseconds(clock.uptime - start)
    (pass.requests, pass.notModified) = (origin.counters.requests, origin.counters.notModified)
    pass.bodyBytes = origin.counters.bodyBytesSent
    for resource in shown.compactMap({ try? $0.outcome.get() }) {
      switch resource.valueOrigin {
      case .transformed, .original: pass.transformed += 1
      case .disk: pass.disk += 1
      case .memory: pass.memory += 1
      }
    }
    return (pass, shown)
  }

  /// The heading of the table, which fits into 80 columns.
  static var header: String {
    let columns = ["requests", "304s", "body bytes", "made", "disk", "memory", "ms"]
    return Text.row("thumbnails", nameWidth, columns, widths)
  }

  private static let nameWidth = 26
  private static let widths = [9, 5, 12, 6, 6, 8, 8]

  var line: String {
    let cells = [
      "\(requests)", "\(notModified)", "\(bodyBytes)", "\(transformed)", "\(disk)", "\(memory)", Text.time(milliseconds),
    ]
    return Text.row(name, Self.nameWidth, cells, Self.widths)
  }
}

/// The expected result of a pass.
struct ImageDemoExpectation {
  var requests = 0
  var notModified = 0
  var bodyBytes = 0
  var transformed = 0
  var disk = 0
  var memory = 0
  /// The expected outcome of revalidating the image with this index.
  var validation: @Sendable (Int) -> RevalidationOutcome = { _ in .notAttempted }

  /// Returns the differences between a pass and this expectation, as sentences.
  func differences(from pass: ImageDemoPass, _ shown: [ImageDemoPass.Shown]) -> [String] {
    let counts = [
      ("requests", pass.requests, requests), ("304s", pass.notModified, notModified), ("body bytes", pass.bodyBytes, bodyBytes),
      ("thumbnails made", pass.transformed, transformed), ("thumbnails from disk", pass.disk, disk),
      ("thumbnails from memory", pass.memory, memory),
    ]
    var wrong = counts.filter { $0.1 != $0.2 }.map { "\(pass.name): \($0.1) \($0.0), expected \($0.2)" }
    for one in shown {
      switch one.outcome {
      case .failure(let error): wrong.append("\(pass.name): \(error)")
      case .success(let resource):
        let expected = validation(one.index)
        if resource.validation != expected {
          wrong.append("\(pass.name): image \(one.index + 1) has validation \(resource.validation), expected \(expected)")
        }
      }
    }
    return wrong
  }
}

/// A sheet of thumbnails in rows, each in a frame.
struct ContactSheet {
  /// A thumbnail and the color of its frame.
  struct Cell {
    var image: DecodedImage
    var frame: RGBA
  }

  private static let columns = 6
  private static let gap = 12
  private static let frame = 4
  private static let ground = RGBA(246, 246, 244)

  private var rows: [[Cell]] = []

  /// Adds thumbnails, starting in a new row.
  mutating func add(_ cells: [Cell]) {
    for start in stride(from: 0, to: cells.count, by: Self.columns) {
      rows.append(Array(cells[start..<min(start + Self.columns, cells.count)]))
    }
  }

  private static func height(of row: [Cell]) -> Int { (row.map(\.image.size.height).max() ?? 0) + frame * 2 }

  /// The size of the whole sheet in pixels.
  var size: PixelSize {
    let widths = rows.map { $0.reduce(Self.gap) { $0 + $1.image.size.width + Self.frame * 2 + Self.gap } }
    return PixelSize(widths.max() ?? Self.gap, rows.reduce(Self.gap) { $0 + Self.height(of: $1) + Self.gap })
  }

  /// Returns the sheet as a PNG file.
  ///
  /// - Throws: `CacheError` if there is not enough memory, or if the sheet cannot be encoded.
  func png() throws(CacheError) -> Data {
    let size = size
    let drawn = PixelBuffer(size: size, channels: .rgb) { bytes in
      var canvas = Canvas(bytes: bytes, width: size.width)
      canvas.fill(0, 0, size.width, size.height, Self.ground)
      var y = Self.gap
      for row in rows {
        var x = Self.gap
        for cell in row {
          let (width, height) = (cell.image.size.width, cell.image.size.height)
          canvas.fill(x, y, width + Self.frame * 2, height + Self.frame * 2, cell.frame)
          canvas.fill(x + Self.frame, y + Self.frame, width, height, Self.ground)
          canvas.draw(cell.image.pixels, x + Self.frame, y + Self.frame)
          x += width + Self.frame * 2 + Self.gap
        }
        y += Self.height(of: row) + Self.gap
      }
    }
    guard let drawn else { throw CacheError(.other, reason: "not enough memory for a sheet of \(size) pixels") }
    return try ImageEncoder(.png).encode(DecodedImage(drawn))
  }
}

/// RGB pixels to draw on.
private struct Canvas {
  let bytes: UnsafeMutableRawBufferPointer
  let width: Int

  mutating func fill(_ x: Int, _ y: Int, _ columns: Int, _ rows: Int, _ color: RGBA) {
    for row in y..<y + rows { for column in x..<x + columns { set(column, row, color) } }
  }

  /// Draws pixels over the present ones, blended by alpha.
  mutating func draw(_ pixels: PixelBuffer, _ x: Int, _ y: Int) {
    for row in 0..<pixels.size.height {
      for column in 0..<pixels.size.width { set(x + column, y + row, pixels[column, row]) }
    }
  }

  private func set(_ x: Int, _ y: Int, _ color: RGBA) {
    let start = (y * width + x) * 3
    let alpha = Int(color.alpha)
    for (channel, value) in [color.red, color.green, color.blue].enumerated() {
      bytes[start + channel] = UInt8((Int(value) * alpha + Int(bytes[start + channel]) * (255 - alpha) + 127) / 255)
    }
  }
}
#endif
