import CacheCore
import HTTPTypes
import ImageCodecs

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

private let maximumSide = 4_096
private let presets: [String: ImageOperations] = [
  "a": operations("fill=96x96:top,format=webp,quality=60"), "b": operations("width=auto:200,dpr=auto,blur=2"),
]

private func operations(_ text: String) -> ImageOperations {
  guard let operations = try? ImageOperations(text, maximumSide: maximumSide) else { preconditionFailure("invalid: \(text)") }
  return operations
}

/// Checks that the parts of a path are those of which it was made.
func checkPath(_ text: String) {
  if let parts = PathParts(text, under: "/img") {
    let path = "/img/\(Base64URL.text(parts.signature))/\(parts.signed)"
    precondition(parts.signature.count == 32 && path.utf8.elementsEqual(text.utf8))
    if let (operations, source) = try? parts.decoded {
      let again = PathParts("/img/\(Base64URL.text(parts.signature))/\(PathParts.signed(operations, source))", under: "/img")
      guard let decoded = try? again?.decoded else { preconditionFailure("a signed path cannot be read") }
      precondition(decoded == (operations, source) && again?.signature == parts.signature)
      checkSource(source)
      checkOperations(operations, ratio: 1.5)
    }
  }
  let halves = text.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
  let signed = PathParts.signed(halves[0], halves.last ?? "")
  let path = PathParts("/img/\(String(repeating: "A", count: 43))/\(signed)", under: "/img")
  guard let decoded = try? path?.decoded else { preconditionFailure("a signed path cannot be read") }
  precondition(decoded == (halves[0], halves.last ?? ""))
}

/// Checks that the canonical text of operations is read as the same operations, and that all sizes are within the limit.
func checkOperations(_ text: String, ratio: Double) {
  guard let parsed = try? ImageOperations(text, presets: presets, maximumSide: maximumSide) else { return }
  precondition(parsed.clientWidth.map { (0...parsed.steps.count).contains($0.index) } ?? true)
  if !parsed.isOriginal {
    let again = operations(parsed.description)
    precondition(again.description == parsed.description && again.steps == parsed.steps)
  }
  let scaled = parsed.scaled(by: ratio, maximumSide: maximumSide)
  // A rectangle outside an image is empty, which is an error when the image is known.
  let mayBeEmpty = parsed.steps.contains { if case .cut = $0 { true } else { false } }
  for operations in [parsed, scaled] {
    _ = (operations.processor, operations.encoder(.webp))
    for size in [PixelSize(1, 1), PixelSize(400, 300), PixelSize(65_535, 1), PixelSize(30_000, 30_000)] {
      for size in operations.sizes(from: size) {
        precondition(mayBeEmpty ? size.width >= 0 && size.height >= 0 : size.width > 0 && size.height > 0)
      }
    }
  }
  for step in parsed.steps {
    guard case .resize(let rule, true) = step else { continue }
    let size = ImageOperations.Step.resize(rule, enlarges: true).size(of: PixelSize(1, 30_000))
    precondition(size.width > 0 && size.height > 0)
  }
}

/// Checks that a source is read from its own text, that a file stays in its folder and is not hidden, and that no URL leads out
/// of the allowed ones.
func checkSource(_ text: String) {
  guard let reference = try? SourceReference(text) else { return }
  guard let again = try? SourceReference(SourceReference.text(of: reference.url)) else {
    preconditionFailure("the text of a source is not valid")
  }
  precondition(again.url == reference.url && again.request == reference.request)
  if let folder = SourceReference.folder(of: reference.url) {
    precondition(SourceReference.isFolderName(folder))
    let path = Array(reference.url.path(percentEncoded: false).utf8)
    for name in path.split(separator: UInt8(ascii: "/")) { precondition(name.first != UInt8(ascii: ".")) }
    return
  }
  for pattern in ["https://photos.example.com/public/", "https://*.example.com/public"] {
    guard let origin = OriginPattern(pattern) else { preconditionFailure("the pattern is invalid") }
    guard origin.matches(reference.url) else { continue }
    let url = reference.url
    precondition(url.scheme?.lowercased() == "https" && url.user() == nil)
    precondition(url.host().map(HostName.comparable)?.hasSuffix(".example.com") == true)
    // Some servers decode a path before they split it.
    let path = HostName.percentDecodedBytes(url.path(percentEncoded: true)[...]).bytes
    precondition(path.starts(with: "/public".utf8) && !path.split { "/\\;".utf8.contains($0) }.contains(Array("..".utf8)[...]))
  }
}

/// Checks the fields by which a client selects a format and a size. Each line is a value.
func checkNegotiation(_ text: String) {
  let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  var fields: HTTPFields = [.accept: lines[0]]
  for (name, value) in zip(["Sec-CH-DPR", "Sec-CH-Width", "DPR", "Width"], lines.dropFirst()) {
    if let name = HTTPField.Name(name) { fields[name] = value }
  }
  for operations in presets.values {
    let result = operations.negotiated(with: fields, formats: [.avif, .webp], maximumSide: maximumSide)
    precondition(result.operations.clientWidth == nil && result.operations.pixelRatio == 1)
    for case .resize(.width(let width), _) in result.operations.steps { precondition((1...maximumSide).contains(width)) }
    if result.format == .avif { precondition(lines[0].lowercased().contains("image/avif")) }
  }
}
