public import CacheCore
public import CacheManager
public import ImageCodecs

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceManager {
  /// Loads a picture as a stream of events: progress, a progressive JPEG's scans while they come, a stored picture that may be outdated, the final one.
  ///
  /// ```swift
  /// for try await event in manager.images(at: url, .resize(.fit(800, 800))) {
  ///   switch event {
  ///   case .progress(let progress): bar.fraction = progress.fraction
  ///   case .preview(let coarse): view.show(coarse)
  ///   case .stale(let old): view.show(old.value)
  ///   case .final(let resource): view.show(resource.value)
  ///   }
  /// }
  /// ```
  ///
  /// The load starts when the first event is asked for; ending the iteration early cancels it. Previews are never cached, and cost a preview's decoding each. A load that joins
  /// one that is under way has none.
  ///
  /// - Parameters:
  ///   - url: what to load.
  ///   - processor: what is done to the picture, and to its previews.
  ///   - scale: how many of its pixels make a point.
  ///   - previews: how many previews there are at most, and of what.
  ///   - options: what this load sets for itself.
  public func images(
    at url: URL, _ processor: ImageProcessor = .none, scale: Double = 1, previews: ImagePreviews = .standard,
    options: RequestOptions = RequestOptions()
  ) -> ImageEvents {
    let manager = self
    return ImageEvents { channel in
      let previewer = ImagePreviewer(
        processor, scale: scale, previews: previews, executor: options.executor ?? manager.configuration.executor
      ) { channel.send(.preview($0)) }
      var options = options
      // Providers have everything at once.
      if let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https",
        let base = options.downloader.resolved(manager.configuration.downloader)
      {
        options.downloader = .some(PreviewedDownloader(base: base, previewer: previewer))
      }
      let events = manager.events(for: ResourceRequest(url, options: options), as: .image(processor, scale: scale))
      let task = Task {
        do throws(CacheError) {
          for try await event in events {
            // A preview that is finished at this moment comes before the result, or never.
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
