#if Origin
import Foundation
import LoopbackOrigin

/// Damaged, interrupted, refused and concurrent writes.
extension Trial {
  func flip() throws -> Finding {
    let image = TestImage.png(1)
    serve("/image", image, etag: "v1", cacheControl: "max-age=3600")
    var loader = try open()
    if let failure = try prepare(loader, "/image", image) { return failure }
    try loader.end()
    guard try flipStoredBit(of: image) else { return .doesNotApply("nothing is stored") }
    loader = try open()
    let first = try loader.load(origin.url("/image"))
    if first.error == nil, !gave(first, image) { return .fails("the damaged image as a success") }
    let second = try loader.load(origin.url("/image"))
    guard gave(second, image) else { return .fails("an error, at each load") }
    if first.error != nil { return .fails("an error, the next load gives the image") }
    return .passes("the correct image, transferred again")
  }

  /// Flips a bit in the middle of the image in each file that contains it.
  ///
  /// - Returns: Whether there was such a file. A file that contains the image in another form is damaged in its middle.
  private func flipStoredBit(of image: Data) throws -> Bool {
    let middle = image[(image.count / 2)..<(image.count / 2 + 32)]
    var files: [(url: URL, content: Data)] = []
    let names = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: [.isRegularFileKey])
    while let url = names?.nextObject() as? URL {
      guard try url.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true else { continue }
      files.append((url, try Data(contentsOf: url)))
    }
    var isFlipped = false
    for (url, content) in files {
      guard let range = content.range(of: middle) else { continue }
      try damage(url, content, at: range.lowerBound)
      isFlipped = true
    }
    if !isFlipped, let (url, content) = files.max(by: { $0.content.count < $1.content.count }), content.count > image.count {
      try damage(url, content, at: content.startIndex + content.count / 2)
      isFlipped = true
    }
    return isFlipped
  }

  private func damage(_ url: URL, _ content: Data, at index: Data.Index) throws {
    var content = content
    content[index] ^= 4
    try content.write(to: url)
  }

  func killed() throws -> Finding {
    var random = SystemRandomNumberGenerator()
    var wrong = 0
    for round in 0..<12 {
      // Each round has new paths, so only the kill can make an image wrong, and not an image that a loader never revalidates.
      let paths = (0..<24).map { "/round/\(round)/image/\($0)" }
      let images = paths.indices.map { TestImage.png(round * 100 + $0, side: 96) }
      // The images do not change, so the origin confirms the bytes of a loader that stores the tag before them.
      for (path, image) in zip(paths, images) { serve(path, image, etag: "v1", cacheControl: "no-cache") }
      let victim = try open(slowsWrites: true)
      let loads = try paths.map { try victim.start(origin.url($0)) }
      for load in loads.prefix(Int.random(in: 1..<paths.count, using: &random)) { _ = try victim.reply(to: load) }
      usleep(UInt32.random(in: 0...3_000, using: &random))
      victim.kill()
      let loader = try open()
      for (path, image) in zip(paths, images) where !gave(try loader.load(origin.url(path)), image) { wrong += 1 }
      try loader.end()
    }
    return wrong == 0 ? .passes("all images correct") : .fails("wrong images or errors")
  }

  func full() throws -> Finding {
    let images = (0..<6).map { ("/image/\($0)", TestImage.png($0)) }
    for (path, image) in images { serve(path, image, etag: "v1", cacheControl: "max-age=3600") }
    let poor = try open(fileSizeLimit: 16 << 10)
    for (path, image) in images + images where !gave(try poor.load(origin.url(path)), image) {
      return .fails("a load fails")
    }
    try poor.end()
    var loader = try open()
    for (path, image) in images where !gave(try loader.load(origin.url(path)), image) {
      return .fails("a load fails when there is room again")
    }
    loader = try reopen(loader)
    let before = origin.counters.requests
    for (path, image) in images where !gave(try loader.load(origin.url(path)), image) {
      return .fails("a load fails when there is room again")
    }
    return origin.counters.requests == before
      ? .passes("no load fails, stored again afterwards") : .fails("no load fails, nothing is stored afterwards")
  }

  func processes() throws -> Finding {
    let images = (0..<24).map { ("/image/\($0)", TestImage.png($0, side: 96)) }
    for (path, image) in images { serve(path, image, etag: "v1", cacheControl: "max-age=3600") }
    let (one, other) = (try open(), try open())
    let url = origin.url("/image/0")
    guard gave(try one.load(url), images[0].1) else { return .fails("a load fails") }
    let isShared = try sharesStored(other, url, images[0].1)
    // Both at once, in opposite orders.
    let loads = try images.map { try one.start(origin.url($0.0)) }
    let reversed = try images.reversed().map { try other.start(origin.url($0.0)) }
    for (load, image) in zip(loads, images) where !gave(try one.reply(to: load), image.1) {
      return .fails("a wrong image or an error")
    }
    for (load, image) in zip(reversed, images.reversed()) where !gave(try other.reply(to: load), image.1) {
      return .fails("a wrong image or an error")
    }
    try one.end()
    try other.end()
    let later = try open()
    for (path, image) in images where !gave(try later.load(origin.url(path)), image) {
      return .fails("a wrong image after a restart")
    }
    guard let isShared else { return .fails("a load fails") }
    return isShared
      ? .passes("all images correct, each uses what the other stored")
      : .fails("all images correct, each transfers what the other has stored")
  }

  /// Whether `process` loads `url` from what another process has stored; `nil` if the load fails.
  private func sharesStored(_ process: LoaderProcess, _ url: URL, _ image: Data) throws -> Bool? {
    let before = origin.counters.requests
    guard gave(try process.load(url), image) else { return nil }
    return origin.counters.requests == before
  }
}
#endif
