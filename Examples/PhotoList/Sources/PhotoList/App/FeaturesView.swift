#if canImport(SwiftUI)
import CacheUI
import Foundation
import SwiftUI

/// The settings of views that a list does not need. The photographs are those of the server.
struct FeaturesView: View {
  let session: ListSession
  @State private var number = 0
  @State private var animation = ""

  private static let photographs = ListRow.all.filter { $0.kind == .photograph }

  private var photograph: URL? { session.url(of: Self.photographs[number % Self.photographs.count]) }

  var body: some View {
    ScrollView {
      VStack {
        Text("A transform for the size of the view")
        CachedImage(photograph)
          .transform { size, scale in .displayImage(.covering(size) + .circle, scale: scale, storedAs: .automatic) }
          .frame(width: 96, height: 96)
        Text("The previous image until the next one")
        CachedImage(photograph).downsampledToView().keepsPreviousImage().frame(width: 144, height: 96)
        Text("Nothing for 50 ms, while the disk is read")
        CachedImage(photograph).downsampledToView().placeholderDelay(.milliseconds(50)).frame(width: 144, height: 96)
        Button("Next Photograph") { number += 1 }
        TextField("URL of an animated image", text: $animation)
        if let url = URL(string: animation) { AnimatedImageView(url: url) }
      }
    }
  }
}

/// An animated image with a button and a slider. It does not play until the button is pressed.
private struct AnimatedImageView: View {
  let url: URL?

  var body: some View {
    CachedImage(url) { model in
      VStack {
        if let image = model.image { Image(image)?.resizable().scaledToFit() }
        if let error = model.phase.error { Text(error.description) }
        if model.player.frameCount > 1 { AnimationControls(player: model.player) }
      }
    }
    .autoplays(false)
    .frame(height: 160)
  }
}

/// The controls of an animation. Only this view is updated when the state of the player changes.
private struct AnimationControls: View {
  let player: AnimationPlayer

  var body: some View {
    HStack {
      Button(player.isPlaying ? "Pause" : "Play") { player.isPlaying ? player.pause() : player.play() }
      Slider(value: position, in: 0...Double(player.frameCount - 1), step: 1) { Text("Frame") }
      Text("\(player.frame + 1) of \(player.frameCount)")
    }
    if let error = player.error { Text(error.description) }
  }

  private var position: Binding<Double> {
    Binding { @MainActor in
      Double(player.frame)
    } set: { @MainActor position in
      player.seek(to: Int(position))
    }
  }
}
#endif
