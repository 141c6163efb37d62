public import CacheCore
public import CacheManager
public import ImageCodecs

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

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
    let manager = self
    return ImageEvents { channel in
      let previewer = ImagePreviewer(
        processor, scale: scale, previews: previews, executor: options.executor ?? manager.configuration.executor
      ) { channel.send(.preview($0)) }
      var options = options
      // Scheme handlers return whole bodies, so there is nothing to preview.
      if let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https",
        let base = options.downloader.resolved(manager.configuration.downloader)
      {
        // Below the previews, which show the bytes that the hooks return.
        let hooked: any Downloader = if let hooks = options.hooks { base.hooked(by: hooks) } else { base }
        options.downloader = .use(PreviewedDownloader(base: hooked, previewer: previewer))
        options.hooks = nil
      }
      let events = manager.events(for: ResourceRequest(url, options: options), as: .image(processor, scale: scale))
      let task = Task {
        do throws(CacheError) {
          for try await event in events {
            // A preview that is finished at this moment is delivered before the result, or never.
            if case .final = event { channel.finish(with: ImageEvent(event)) } else { channel.send(ImageEvent(event)) }
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
