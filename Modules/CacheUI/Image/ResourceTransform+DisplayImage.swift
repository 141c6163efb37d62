public import Etagere

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension ResourceTransform where Value == DisplayImage {
  /// A transform that produces an image in the pixel format of the screen. ``ImageModel`` and ``ImagePrefetcher`` use
  /// it.
  ///
  /// The display image is cached in memory in addition to the original bytes. It is converted once, on the executor
  /// that decodes the image.
  ///
  /// - Parameters:
  ///   - processor: The steps that change the image.
  ///   - scale: The number of pixels per point.
  public static func displayImage(_ processor: ImageProcessor = .none, scale: Double = 1) -> ResourceTransform {
    let (decoder, rest) = processor.decoding(scale: scale)
    return ResourceTransform(decoder: DisplayImageDecoder(decoder: decoder, processor: rest))
  }
}

/// A decoder that decodes and processes an image and converts it to a display image.
struct DisplayImageDecoder: ResourceDecoder {
  let decoder: ImageDecoder
  let processor: ImageProcessor

  var id: ComponentID { ComponentID(Self.self, parameters: "\(decoder.id.parameters)|\(processor)") }

  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> DisplayImage {
    try DisplayImage(try processor.process(try decoder.decode(data, metadata)))
  }

  func cost(of value: DisplayImage) -> Int { value.cost }

  func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int {
    guard let header = try? ImageHeader(of: data, limits: decoder.limits) else { return 0 }
    let target = decoder.size?.size(of: header.size) ?? header.size
    let (converted, overflows) = target.area.multipliedReportingOverflow(by: 4)
    let (sum, sumOverflows) = decoder.workingMemory(for: data, metadata).addingReportingOverflow(converted)
    return overflows || sumOverflows ? .max : sum
  }
}
