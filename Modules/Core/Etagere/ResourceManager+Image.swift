public import CacheCore
public import CacheManager
internal import HTTPTypes
public import ImageCodecs

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceManager {
  /// Loads and decodes an image, upright and in sRGB.
  ///
  /// ```swift
  /// let image = try await manager.image(for: url)
  /// let avatar = try await manager.image(for: url, .fill(96, 96) + .circle)
  /// let thumbnail = try await manager.image(for: url, .resize(.fit(400, 400)), storedAs: .automatic)
  /// ```
  ///
  /// The processed image is cached in memory beside the original bytes. The original is cached on disk. With an encoder, the
  /// processed image is stored on disk too. When the original changes, every image that was made from it is made again. Use
  /// `load(_:as:)` with `.image()` to obtain the source and the age of the image.
  ///
  /// - Parameters:
  ///   - url: The URL of the image.
  ///   - processor: The steps that change the image.
  ///   - scale: The pixels per point.
  ///   - limits: The limits beyond which an image is refused.
  ///   - encoder: The format in which the processed image is stored on disk, or `nil` to store only the original.
  ///     `RequestOptions.storagePolicy` decides which of the two is stored.
  ///   - options: The options of this load.
  /// - Throws: `CacheError` if the load fails or if the response is not an image.
  public func image(
    for url: URL, _ processor: ImageProcessor = .none, scale: Double = 1, limits: ImageLimits = .standard,
    storedAs encoder: ImageEncoder? = nil, options: RequestOptions = RequestOptions()
  ) async throws(CacheError) -> DecodedImage {
    try await load(url, as: .image(processor, scale: scale, limits: limits, storedAs: encoder), options: options).value
  }
}

/// An event of an image load.
public enum ImageEvent: Sendable {
  /// Bytes were received.
  case progress(LoadProgress)
  /// A preview of a progressive JPEG, with less detail than the final image.
  case preview(DecodedImage)
  /// A stored image that may be outdated. The final image follows, or the stream throws.
  case stale(Resource<DecodedImage>)
  /// The final image, after which no event follows.
  case final(Resource<DecodedImage>)
}

/// An event of a load that may have previews.
package enum PreviewedEvent<Value: Sendable>: Sendable {
  /// The value that the transform made from the bytes so far.
  case preview(Value)
  /// An event of the load.
  case event(ResourceEvent<Value>)
}

/// The events of one load with previews, in the form that the consumer receives.
struct PreviewedEvents<Event: Sendable>: AsyncSequence, Sendable {
  let merge: @Sendable (Event, Event) -> Event?
  let start: @Sendable (EventChannel<Event>) -> Void

  func makeAsyncIterator() -> some AsyncIteratorProtocol<Event, CacheError> { EventIterator(merging: merge, start: start) }
}

extension PreviewedEvent {
  /// Merges two previews, or two progress reports, that the consumer has not taken yet into the later one.
  fileprivate static func merge(_ earlier: Self, _ later: Self) -> Self? {
    switch (earlier, later) {
    case (.event(.progress), .event(.progress)), (.preview, .preview): later
    default: nil
    }
  }

  fileprivate var isFinal: Bool { if case .event(.final) = self { true } else { false } }
}

extension ImageEvent {
  /// Merges two previews, or two progress reports, that the consumer has not taken yet into the later one.
  fileprivate static func merge(_ earlier: Self, _ later: Self) -> Self? {
    switch (earlier, later) {
    case (.progress, .progress), (.preview, .preview): later
    default: nil
    }
  }

  fileprivate init(_ event: PreviewedEvent<DecodedImage>) {
    switch event {
    case .preview(let image): self = .preview(image.asPreview())
    case .event(.progress(let progress)): self = .progress(progress)
    case .event(.stale(let old)): self = .stale(old)
    case .event(.final(let resource)): self = .final(resource)
    }
  }
}

extension ResourceManager {
  /// Loads an image as a stream of events: progress, previews of a progressive JPEG, a stale cached image, and the final image.
  ///
  /// ```swift
  /// for try await event in manager.imageEvents(for: url, .resize(.fit(800, 800))) {
  ///   switch event {
  ///   case .progress(let progress): bar.fraction = progress.fraction
  ///   case .preview(let coarse): view.show(coarse)
  ///   case .stale(let old): view.show(old.value)
  ///   case .final(let resource): view.show(resource.value)
  ///   }
  /// }
  /// ```
  ///
  /// Iterate the sequence once. The load starts with the first call of `next()`. Ending the iteration early cancels the load.
  /// Previews are never cached. A load that joins another load yields no previews.
  ///
  /// - Parameters:
  ///   - url: The URL of the image.
  ///   - processor: The steps that change the image and its previews.
  ///   - scale: The pixels per point.
  ///   - previews: The number and kind of previews.
  ///   - options: The options of this load.
  public func imageEvents(
    for url: URL, _ processor: ImageProcessor = .none, scale: Double = 1, previews: ImagePreviews = .standard,
    options: RequestOptions = RequestOptions()
  ) -> some AsyncSequence<ImageEvent, CacheError> & Sendable {
    imageEvents(for: ResourceRequest(url, options: options), as: .image(processor, scale: scale), previews: previews)
  }

  /// Loads the image of a request as a stream of events: see ``imageEvents(for:_:scale:previews:options:)``.
  ///
  /// - Parameters:
  ///   - request: The request of the image.
  ///   - transform: The transform that makes the image. It also makes the previews, from the bytes so far and an end-of-image
  ///     marker. If it throws for them, there is no preview.
  ///   - previews: The number and kind of previews.
  public func imageEvents(
    for request: ResourceRequest, as transform: ResourceTransform<DecodedImage>, previews: ImagePreviews = .standard
  ) -> some AsyncSequence<ImageEvent, CacheError> & Sendable {
    previewedEvents(for: request, as: transform, previews: previews, merging: ImageEvent.merge) { ImageEvent($0) }
  }

  /// Loads the value of a request as a stream of events with previews, which the transform makes too.
  package func previewedEvents<Value: Sendable>(
    for request: ResourceRequest, as transform: ResourceTransform<Value>, previews: ImagePreviews
  ) -> some AsyncSequence<PreviewedEvent<Value>, CacheError> & Sendable {
    previewedEvents(for: request, as: transform, previews: previews, merging: PreviewedEvent.merge) { $0 }
  }

  private func previewedEvents<Value: Sendable, Event: Sendable>(
    for request: ResourceRequest, as transform: ResourceTransform<Value>, previews: ImagePreviews,
    merging merge: @escaping @Sendable (Event, Event) -> Event?, converting: @escaping @Sendable (PreviewedEvent<Value>) -> Event
  ) -> PreviewedEvents<Event> {
    let manager = self
    return PreviewedEvents(merge: merge) { channel in
      let response = Lock<StoredMetadata?>(nil)
      let executor = request.options.executor ?? manager.configuration.executor
      let previewer = ImagePreviewer(previews: previews, executor: executor) { file in
        guard let metadata = response.withLock({ $0 }), let value = try? await transform.make(ResourceBody(file), metadata) else {
          return nil
        }
        return { channel.send(converting(.preview(value))) }
      }
      var request = request
      // Scheme handlers return whole bodies, so there is nothing to preview.
      if let scheme = request.url.scheme?.lowercased(), scheme == "http" || scheme == "https",
        let base = request.options.downloader.resolved(manager.configuration.downloader)
      {
        // Below the previews, which show the bytes that the hooks return.
        let hooked: any Downloader = if let hooks = request.options.hooks { base.hooked(by: hooks) } else { base }
        let clock = request.options.clock ?? manager.configuration.clock
        request.options.downloader = .use(
          PreviewedDownloader(base: hooked, previewer: previewer) { request, head in
            let metadata = StoredMetadata(request: request.head, response: head, at: clock.now)
            response.withLock { $0 = metadata }
          })
        request.options.hooks = nil
      }
      let events = manager.events(for: request, as: transform)
      let task = Task {
        do throws(CacheError) {
          for try await event in events {
            let event = PreviewedEvent.event(event)
            // A preview that is finished at this moment is delivered before the result, or never.
            if event.isFinal { channel.finish(with: converting(event)) } else { channel.send(converting(event)) }
          }
          previewer.stop()
          channel.finish()
        } catch {
          previewer.stop()
          channel.fail(error)
        }
      }
      channel.onAbandon {
        previewer.stop()
        task.cancel()
      }
    }
  }
}

extension StoredMetadata {
  /// Creates the metadata of a response that is arriving.
  fileprivate init(request: HTTPRequest, response: HTTPResponse, at now: Timestamp) {
    self.init(
      request: request, response: response, requestTime: now, responseTime: now, revision: .random(),
      freshness: Freshness(generatedAt: now, freshUntil: now))
  }
}

/// A downloader that passes the bytes of a response to a previewer. It has the identity of its base, because its responses are
/// the same.
struct PreviewedDownloader: Downloader {
  let base: any Downloader
  let previewer: ImagePreviewer
  /// Called with the head of each response whose body is previewed.
  let begin: @Sendable (DownloadRequest, HTTPResponse) -> Void

  var id: ComponentID { base.id }
  var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    previewer.restart()
    var request = request
    // A preview needs the bytes as they arrive.
    request.collectUpTo = 0
    var response = try await base.download(request)
    // A body that has already arrived needs no preview.
    guard response.head.status == .ok, response.body.data == nil else { return response }
    begin(request, response.head)
    response.body = ResourceBody(
      length: response.body.length, source: PreviewedBody(source: response.body.source, previewer: previewer))
    return response
  }
}

private final class PreviewedBody: ResourceBody.Source {
  private let source: any ResourceBody.Source
  private let previewer: ImagePreviewer

  init(source: any ResourceBody.Source, previewer: ImagePreviewer) { (self.source, self.previewer) = (source, previewer) }

  func next() async throws(CacheError) -> Data? {
    let chunk = try await source.next()
    if let chunk { previewer.take(chunk) }
    return chunk
  }

  func cancel() { source.cancel() }

  var trailers: HTTPFields? { source.trailers }
}
