public import Etagere

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension ResourceTransform where Value == DisplayImage {
  /// The transform to an image in the pixel format of the screen. ``ImageModel`` and ``ImagePrefetcher`` use it.
  ///
  /// Memory caches the display image beside the original bytes. The conversion runs where the image is decoded, once per image.
  ///
  /// - Parameters:
  ///   - processor: The steps that change the image.
  ///   - scale: The number of pixels per point.
  public static func displayImage(_ processor: ImageProcessor = .none, scale: Double = 1) -> ResourceTransform {
    let (decoder, rest) = processor.decoding(scale: scale)
    return ResourceTransform(decoder: DisplayImageDecoder(decoder: decoder, processor: rest))
  }
}

/// Decodes an image, processes it and converts it to a display image.
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
