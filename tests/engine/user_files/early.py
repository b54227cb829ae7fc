"""A model file of somebody with callbacks: it stops early, lowers its rate, and writes files."""

import keras


def build_model(patience=0):
    """Return a compiled model for two classes that soon learns no more."""
    model = keras.Sequential([keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(keras.optimizers.Adam(0.05), loss="binary_crossentropy", metrics=["accuracy"])
    return model


def build_callbacks(patience=0):
    """Return callbacks that change the course of the training."""
    return [
        keras.callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.5, patience=0, min_delta=0.05, verbose=0),
        keras.callbacks.EarlyStopping(
            monitor="val_loss", min_delta=0.002, patience=patience, restore_best_weights=True
        ),
        keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print(f"SAW {epoch} {sorted(logs)}")),
    ]
