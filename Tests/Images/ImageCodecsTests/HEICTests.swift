#if VIPS && os(Linux)
import CacheCore
import ImageCodecs
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The four quarters in 64 × 48 pixels, as a grid of one tile (ISO/IEC 23008-12), encoded by x265.
private let file =
  Data(
    base64Encoded: """
      AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAa5tZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAAA5waXRtAAAAAAACAAAA
      EGlkYXQAAAAAAEAAMAAAADhpbG9jAQAAAERAAAIAAQAAAAAAAAHSAAEAAAAAAAABGwACAAEAAAAAAAAAAQAAAAAAAAAIAAAAOGlpbmYAAAAAAAIAAAAVaW5m
      ZQIAAAEAAQAAaHZjMQAAAAAVaW5mZQIAAAAAAgAAZ3JpZAAAAADZaXBycAAAALdpcGNvAAAAd2h2Y0MBBAgAAAAAAAAAAAAe8AD8//j4AAAPAyAAAQAXQAEM
      Af//BAgAAAMAnjgAAAMAAB66AkAhAAEAKkIBAQQIAAADAJ44AAADAAAekAQQILLdXJTXNwICBgQAAAMABAAAAwAEICIAAQAIRAHBcxgwCJAAAAAUaXNwZQAA
      AAAAAABAAAAAQAAAABRpc3BlAAAAAAAAAEAAAAAwAAAAEHBpeGkAAAAAAwgICAAAABppcG1hAAAAAAAAAAIAAQKBAgACAgOEAAAAGmlyZWYAAAAAAAAADmRp
      bWcAAgABAAEAAAEjbWRhdAAAARcoAa8GOFr3tt/M4H//+Vpvof3rionRW/GlY2qvuQI338Dnf/+smI94D7+JToihnCtQr0eQT/aF726/ENyOrK+6UwQOizd3
      sVxyEN/RJfTpSIxxP3lgtGMLf70EqAd02wTXVoB1RXA4c/Mb9/33/9IoD/+08R3wwhksP2qyw+ysix7pGP73r3X+aJo/4e+2In/kOf74gzL2Vo4WbuBHQ9XJ
      s3PCH0kybCXSXFhJevefl3LUCPYAXNXIPtmv22XikjaRIB/A7DD/O1oLh2SXQCgidSKd0ePdfpOgvWoa31m4GL8Df4TYiFo65kL7epZ9HKNfZj7L/MauOH+9
      i/RJz4Pwe24rvKsYwKH/vPwB6t1BPEV2H6H0M7A=
      """.filter { !$0.isWhitespace }) ?? Data()

/// Whether libheif has an HEVC decoder, determined by libheif itself. The text of a libvips error is unreliable,
/// because all threads of the process share it.
private let hasDecoder: Bool = {
  // libheif loads its decoders on first use.
  _ = try? ImageDecoder().decode(file)
  guard let library = dlopen("libheif.so.1", RTLD_LAZY), let symbol = dlsym(library, "heif_have_decoder_for_format") else {
    return false
  }
  let hevc: Int32 = 1
  return unsafeBitCast(symbol, to: (@convention(c) (Int32) -> Int32).self)(hevc) != 0
}()

@Suite("HEIC", .enabled(if: hasDecoder, "libheif has no HEVC decoder"))
struct HEICTests {
  @Test("HEIC is decoded in any size")
  func pixels() throws {
    let header = try ImageHeader(of: file)
    #expect(header.format == .heic && header.size == PixelSize(64, 48) && !header.isAnimated)
    for (size, pixels) in [(nil, PixelSize(64, 48)), (ImageSizing.fit(32, 32), PixelSize(32, 24))] {
      let image = try ImageDecoder(size: size).decode(file)
      #expect(image.size == pixels)
      #expect(areClose(TestImages.quarters(of: image.pixels), TestImages.colors))
    }
  }

  @Test("a truncated HEIC is an error")
  func truncated() {
    for length in stride(from: 0, to: file.count, by: 7) {
      #expect(throws: CacheError.self) { try ImageDecoder().decode(file.prefix(length)) }
    }
  }
}
#endif
