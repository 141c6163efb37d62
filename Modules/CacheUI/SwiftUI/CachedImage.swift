#if canImport(SwiftUI)
public import Etagere
public import Foundation
public import SwiftUI

/// A view that loads and shows an image, from the cache if possible.
///
/// ```swift
/// CachedImage(url) { image in
///   image.resizable().scaledToFill()
/// } placeholder: { model in
///   if model.phase.error != nil {
///     Button("Retry", systemImage: "arrow.clockwise", action: model.retry)
///   } else {
///     ProgressView(value: model.progress?.fraction)
///   }
/// }
/// .downsampledToView()
/// .frame(width: 96, height: 96)
/// ```
///
/// The initializers match those of `AsyncImage`. Unlike `AsyncImage`, the view shows an image in memory without a
/// placeholder, and revalidates a stale image while showing it.
///
/// An image without a label is hidden from assistive technology. Set a label with the initializer or with
/// `accessibilityLabel(_:)`.
public struct CachedImage<Content: View>: View {
  private let url: URL?
  private let scale: CGFloat
  private let transaction: Transaction
  private let content: (ImageModel) -> Content
  private var processor = ImageProcessor.none
  private var options = RequestOptions()
  private var isDownsampled = false
  private var keepsLoading = false
  @Environment(\.resourceManager) private var manager
  @Environment(\.displayScale) private var displayScale

  /// Creates a view from the states of an image's load.
  ///
  /// - Parameters:
  ///   - url: The URL of the image, or `nil` for no image.
  ///   - scale: The number of pixels per point. With ``downsampledToView()``, the display's scale is used.
  ///   - transaction: The transaction in which a new image appears.
  ///   - content: A closure that makes the view from the model, which contains the phase, the image, the progress and
  ///     `retry()`.
  public init(
    _ url: URL?, scale: CGFloat = 1, transaction: Transaction = Transaction(),
    @ViewBuilder content: @escaping (ImageModel) -> Content
  ) {
    self.url = url
    self.scale = scale
    self.transaction = transaction
    self.content = content
  }

  /// Creates a view from the image and a placeholder.
  ///
  /// - Parameters:
  ///   - url: The URL of the image, or `nil` for no image.
  ///   - scale: The number of pixels per point. With ``downsampledToView()``, the display's scale is used.
  ///   - label: The accessibility label of the image, or `nil` if the image is decorative.
  ///   - transaction: The transaction in which a new image appears.
  ///   - content: A closure that makes the view from the image.
  ///   - placeholder: A closure that makes the view shown without an image. Its argument contains the progress and the
  ///     error.
  public init<Loaded: View, Placeholder: View>(
    _ url: URL?, scale: CGFloat = 1, label: Text? = nil, transaction: Transaction = Transaction(),
    @ViewBuilder content: @escaping (Image) -> Loaded, @ViewBuilder placeholder: @escaping (ImageModel) -> Placeholder
  ) where Content == _ConditionalContent<Loaded, Placeholder> {
    self.init(url, scale: scale, transaction: transaction) { model in
      if let image = model.image.flatMap({ Image($0, label: label) }) { content(image) } else { placeholder(model) }
    }
  }

  /// Creates a view that shows the image in its original size, with a gray placeholder.
  ///
  /// - Parameters:
  ///   - url: The URL of the image, or `nil` for no image.
  ///   - scale: The number of pixels per point.
  ///   - label: The accessibility label of the image, or `nil` if the image is decorative.
  public init(_ url: URL?, scale: CGFloat = 1, label: Text? = nil) where Content == _ConditionalContent<Image, Color> {
    self.init(url, scale: scale, label: label) {
      $0
    } placeholder: { _ in
      Color.gray.opacity(0.3)
    }
  }

  public var body: some View {
    if isDownsampled {
      GeometryReader { proxy in
        let size = proxy.size
        view(
          .covering(width: Double(size.width), height: Double(size.height), scale: Double(displayScale)) + processor,
          scale: Double(displayScale), waits: size.width <= 0 || size.height <= 0
        )
        .frame(width: size.width, height: size.height)
      }
    } else {
      view(processor, scale: Double(scale), waits: false)
    }
  }

  private func view(_ processor: ImageProcessor, scale: Double, waits: Bool) -> some View {
    ModelView(
      manager: manager, url: waits ? nil : url, processor: processor, scale: scale, options: options,
      keepsLoading: keepsLoading, transaction: transaction, content: content
    )
    .id(ObjectIdentifier(manager))
  }

  // MARK: Settings

  /// Resizes the image to cover the view, in pixels of the display. The view takes all the space proposed to it.
  ///
  /// A codec that can decode to a smaller size never makes the full size. A list of small views therefore needs little
  /// memory.
  public func downsampledToView() -> Self { changed { $0.isDownsampled = true } }

  /// Changes the image, after a resize to the view's size.
  public func processed(by processor: ImageProcessor) -> Self { changed { $0.processor = processor } }

  /// Sets the options of the load.
  public func requestOptions(_ options: RequestOptions) -> Self { changed { $0.options = options } }

  /// Continues the load with the lowest priority when the view disappears. By default, the load is cancelled.
  public func keepsLoadingOffscreen() -> Self { changed { $0.keepsLoading = true } }

  private func changed(_ change: (inout Self) -> Void) -> Self {
    var view = self
    change(&view)
    return view
  }
}

/// The view that owns the model.
private struct ModelView<Content: View>: View {
  /// The values whose change starts another load.
  private struct Request: Equatable {
    var url: URL?
    var processor: String
    var scale: Double
    var key: String?
    var partition: String?
    var stores: [StoreChoice]
    var policy: LoadPolicy?
  }

  let manager: ResourceManager
  let url: URL?
  let processor: ImageProcessor
  let scale: Double
  let options: RequestOptions
  let keepsLoading: Bool
  let transaction: Transaction
  let content: (ImageModel) -> Content
  @State private var model: ImageModel
  @Environment(\.accessibilityReduceMotion) private var reducesMotion

  init(
    manager: ResourceManager, url: URL?, processor: ImageProcessor, scale: Double, options: RequestOptions, keepsLoading: Bool,
    transaction: Transaction, content: @escaping (ImageModel) -> Content
  ) {
    self.manager = manager
    self.url = url
    self.processor = processor
    self.scale = scale
    self.options = options
    self.keepsLoading = keepsLoading
    self.transaction = transaction
    self.content = content
    _model = State(initialValue: ImageModel(manager: manager))
  }

  var body: some View {
    let request = Request(
      url: url, processor: processor.description, scale: scale, key: options.key, partition: options.partition,
      stores: options.ownStores, policy: options.policy)
    content(model)
      .transaction(value: model.shown?.revision) { $0 = transaction }
      .onAppear { model.load(url, processor, scale: scale, options: options) }
      .onDisappear { model.disappear(keepsLoading: keepsLoading) }
      .onChange(of: request) { model.load(url, processor, scale: scale, options: options) }
      .task(id: model.shown?.revision) { if !reducesMotion { await model.animate() } }
  }
}

extension Image {
  /// Creates a SwiftUI image from a display image, with a size in points according to its scale.
  ///
  /// - Parameters:
  ///   - image: The image.
  ///   - label: The accessibility label, or `nil` for a decorative image.
  public init?(_ image: DisplayImage, label: Text? = nil) {
    guard let drawn = image.cgImage else { return nil }
    if let label {
      self.init(drawn, scale: CGFloat(image.scale), label: label)
    } else {
      self.init(decorative: drawn, scale: CGFloat(image.scale))
    }
  }
}
#endif
