public import Etagere

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension ResourceTransform where Value == DisplayImage {
  /// A transform that decodes and processes an image, and converts it to the pixel format of the screen. ``ImageModel`` and
  /// ``ImagePrefetcher`` use it.
  ///
  /// ```swift
  /// let avatar = ResourceTransform.displayImage(.fill(192, 192) + .circle, scale: 2, storedAs: .automatic)
  /// ```
  ///
  /// The display image is cached in memory in addition to the original bytes. It is converted once, on the executor
  /// that decodes the image.
  ///
  /// - Parameters:
  ///   - processor: The steps that change the image.
  ///   - scale: The number of pixels per point.
  ///   - limits: The limits beyond which an image is refused.
  ///   - encoder: The encoder for the stored image, or `nil` to store only the original: see
  ///     ``displayImage(_:decoder:scale:storedAs:)``.
  public static func displayImage(
    _ processor: ImageProcessor = .none, scale: Double = 1, limits: ImageLimits = .standard,
    storedAs encoder: ImageEncoder? = nil
  ) -> ResourceTransform {
    let decoder = ImageDecoder {
      $0.scale = scale
      $0.limits = limits
    }
    return displayImage(processor, decoder: decoder, storedAs: encoder)
  }

  /// A transform that decodes an image with a given decoder, processes it, and converts it to the pixel format of the screen.
  ///
  /// ```swift
  /// let still = ResourceTransform.displayImage(.circle, decoder: ImageDecoder { $0.firstFrameOnly = true })
  /// ```
  ///
  /// An `ImageDecoder` without a size performs the first step of the processor if that is a resize. Any other decoder returns its
  /// image in the size that it chooses.
  ///
  /// With an encoder, a durable store also stores the final image, as the load's `StoragePolicy` determines. Animated and partial
  /// images, and images with alpha in a format without it, are made from the original in each process, and so are templates. No
  /// file format stores the scale. The image of a decoder of one's own is therefore stored only if it has the scale of the
  /// parameter, or 1 without it.
  ///
  /// - Parameters:
  ///   - processor: The steps that change the image.
  ///   - decoder: The decoder. Its `id` must include every setting.
  ///   - scale: The number of pixels per point, or `nil` for the scale of the decoder.
  ///   - encoder: The encoder for the stored image. With `nil`, only the original is stored.
  public static func displayImage(
    _ processor: ImageProcessor = .none, decoder: some ResourceDecoder<DecodedImage>, scale: Double? = nil,
    storedAs encoder: ImageEncoder? = nil
  ) -> ResourceTransform {
    let first = DisplayImageDecoder(processor, decoder: decoder, scale: scale)
    guard let encoder else { return ResourceTransform(decoder: first) }
    let restorer = first.restorer
    return ResourceTransform(
      decoder: first, encoder: DisplayImageEncoder(encoder: encoder, scale: restorer.scale),
      restorer: DisplayImageDecoder(.none, decoder: restorer))
  }
}

/// A decoder that decodes and processes an image and converts it to a display image.
struct DisplayImageDecoder: ResourceDecoder {
  private let decoder: any ResourceDecoder<DecodedImage>
  private let processor: ImageProcessor
  /// The decoder, if it is the package's own.
  private let standard: ImageDecoder?
  /// The scale of the images of another decoder, or `nil` for the scale that it chooses.
  private let scale: Double?

  init(_ processor: ImageProcessor, decoder: any ResourceDecoder<DecodedImage>, scale: Double? = nil) {
    guard var standard = decoder as? ImageDecoder else {
      (self.decoder, self.processor, self.standard, self.scale) = (decoder, processor, nil, scale)
      return
    }
    var processor = processor
    standard.scale = scale ?? standard.scale
    if standard.size == nil { (standard.size, processor) = processor.splittingResize() }
    (self.decoder, self.processor, self.standard) = (standard, processor, standard)
    self.scale = nil
  }

  var id: ComponentID {
    let (name, parameters) = (String(describing: type(of: decoder)), decoder.id.parameters)
    let scale = scale.map { "|@\($0)" } ?? ""
    return ComponentID(Self.self, parameters: "\(name)#\(parameters.utf8.count):\(parameters)|\(processor)\(scale)")
  }

  /// The decoder of the stored image, which already has its final size. It was made within the limits, so it is always restored.
  fileprivate var restorer: ImageDecoder {
    var restorer = ImageDecoder(scale: scale ?? standard?.scale ?? 1)
    restorer.limits.bytes = .max
    // The limits of a decoder of one's own are not known.
    restorer.limits.pixels = standard.map { max(restorer.limits.pixels, $0.limits.pixels) } ?? .max
    restorer.limits.side = standard.map { max(restorer.limits.side, $0.limits.side) } ?? .max
    return restorer
  }

  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> DisplayImage {
    // Without a step of its own, a still image needs no straight pixels.
    guard let standard, processor.isEmpty else {
      var image = try DisplayImage(try processor.process(try decoder.decode(data, metadata)))
      if let scale { image.scale = scale }
      return image
    }
    switch try standard.decodeForScreen(data, url: metadata.request.absoluteURL) {
    case .rows(let rows): return DisplayImage(rows, scale: standard.scale)
    case .image(let image): return try DisplayImage(image)
    }
  }

  func cost(of value: DisplayImage) -> Int { value.cost }

  func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int {
    let decoding = decoder.workingMemory(for: data, metadata)
    // The size of another decoder's image is not known before it is decoded.
    guard let standard else { return decoding }
    guard let header = try? ImageHeader(of: data, limits: standard.limits) else { return 0 }
    let target = standard.size?.size(of: header.size) ?? header.size
    let (converted, overflows) = target.area.multipliedReportingOverflow(by: 4)
    let (sum, sumOverflows) = decoding.addingReportingOverflow(converted)
    return overflows || sumOverflows ? .max : sum
  }
}

/// An encoder of the display images that a durable store stores.
private struct DisplayImageEncoder: ResourceEncoder {
  let encoder: ImageEncoder
  /// The scale of restored images.
  let scale: Double

  var id: ComponentID { ComponentID(Self.self, parameters: encoder.id.parameters) }

  func canEncode(_ value: DisplayImage) -> Bool {
    guard value.frameCount == 1, !value.isTemplate, !value.isPartial, value.scale == scale else { return false }
    // The channels decide, and not the pixels.
    let sample = PixelBuffer(size: PixelSize(1, 1), channels: value.isOpaque ? .rgb : .rgba) { _ in }
    return sample.map { encoder.canEncode(DecodedImage($0)) } ?? false
  }

  func encode(_ value: DisplayImage, _ metadata: StoredMetadata) throws(CacheError) -> Data {
    try encoder.encode(DecodedImage(try value.straightPixels(), scale: value.scale), metadata)
  }
}
